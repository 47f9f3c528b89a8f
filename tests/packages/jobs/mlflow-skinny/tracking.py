"""Runs tracked in a store on disk; models logged and loaded."""

import mlflow
import torch
from steps import step
from torch import nn


def tracked():
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.set_experiment("tiny")
    return mlflow.start_run()


@step("metrics, parameters, artifacts of a training")
def _():
    with tracked() as run:
        layer = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        mlflow.log_params({"lr": 0.1, "width": 2})
        for i in range(3):
            loss = layer(torch.ones(3, 2)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mlflow.log_metric("loss", loss.item(), step=i)
        torch.save(layer.state_dict(), "weights.pt")
        mlflow.log_artifact("weights.pt")
    client = mlflow.MlflowClient()
    history = [each.value for each in client.get_metric_history(run.info.run_id, "loss")]
    return history, client.get_run(run.info.run_id).data.params


@step("a PyTorch model logged and loaded")
def _():
    import mlflow.pytorch

    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    mlflow.pytorch.save_model(model, "saved", serialization_format="pickle")
    again = mlflow.pytorch.load_model("saved")
    x = torch.ones(2, 3)
    return model(x), again(x)


@step("a PyTorch model as an exported program")
def _():
    import mlflow.pytorch

    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(2, 3)
    mlflow.pytorch.save_model(model, "program", input_example=x.numpy())
    return model(x), mlflow.pytorch.load_model("program")(x)


@step("the weights alone of a PyTorch model")
def _():
    import mlflow.pytorch

    mlflow.pytorch.save_state_dict(nn.Linear(3, 2).state_dict(), "weights")
    return mlflow.pytorch.load_state_dict("weights")


@step("a parameter logged anew with another value", refused=True)
def _():
    with tracked():
        mlflow.log_param("lr", 0.1)
        try:
            mlflow.log_param("lr", 0.2)
        except mlflow.MlflowException as error:  # it goes on with the run's name
            raise type(error)(str(error).partition(".")[0]) from None


@step("a metric that is no number", refused=True)
def _():
    with tracked():
        mlflow.log_metric("loss", torch.ones(2))
