"""timm: models by name, in evaluation and training, an optimizer and a schedule of its own."""

import timm
import timm.optim
import timm.scheduler
import torch

for name in "resnet18 mobilenetv3_small_050 vit_tiny_patch16_224 convnext_atto".split():
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5, drop_rate=0.1)
    x = torch.randn(
        2, 3, 224 if name.startswith("vit") else 64, 224 if name.startswith("vit") else 64
    )
    with torch.no_grad():
        print(name, model.eval()(x).tolist())
    loss = torch.nn.functional.cross_entropy(model.train()(x), torch.tensor([1, 3]))
    loss.backward()
    print(name, loss.item(), sum(p.numel() for p in model.parameters()))
optimizer = timm.optim.create_optimizer_v2(model, opt="lamb", lr=0.01)
schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-4)
for epoch in range(5):
    schedule.step(epoch)
    print("rate", optimizer.param_groups[0]["lr"])
optimizer.step()
print("after", sum(p.abs().sum().item() for p in model.parameters()))
