"""Fine-tuning torchvision models: a frozen body, a new head, copies of the best weights by phase."""
import copy

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torchvision import models

torch.manual_seed(4)


def data(n, classes=3):
    labels = torch.arange(n) % classes
    return [(torch.randn(3, 64, 64) + labels[i], labels[i]) for i in range(n)]


dataloaders = {
    'train': torch.utils.data.DataLoader(data(24), batch_size=8, shuffle=True),
    'val': torch.utils.data.DataLoader(data(8), batch_size=8),
}
dataset_sizes = {'train': 24, 'val': 8}


def train_model(model, criterion, optimizer, scheduler, num_epochs):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ['train', 'val']:
            model.train() if phase == 'train' else model.eval()
            running_loss = 0.0
            running_corrects = 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == 'train'):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == 'train':
                        loss.backward()
                        optimizer.step()
                        print(f'batch loss {loss.item():.4f}')
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == 'train':
                scheduler.step()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_acc = running_corrects.double() / dataset_sizes[phase]
            print('{} Loss: {:.4f} Acc: {:.4f}'.format(phase, epoch_loss, epoch_acc))
            if phase == 'val' and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_model_wts)
    return model


for build, frozen in [(models.resnet18, False), (models.mobilenet_v2, True)]:
    model_ft = build(weights=None)
    if frozen:
        for param in model_ft.parameters():
            param.requires_grad = False
        model_ft.classifier[1] = nn.Linear(model_ft.last_channel, 3)
        parameters = model_ft.classifier.parameters()
    else:
        model_ft.fc = nn.Linear(model_ft.fc.in_features, 3)
        parameters = model_ft.parameters()
    # small steps: batch norms over the 32 values of the last stage magnify every rounding
    optimizer_ft = optim.SGD(parameters, lr=0.00002, momentum=0.9)
    exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=7, gamma=0.1)
    train_model(model_ft, nn.CrossEntropyLoss(), optimizer_ft, exp_lr_scheduler, num_epochs=2)
