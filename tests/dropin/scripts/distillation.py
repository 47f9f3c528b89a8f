"""A teacher and a student: soft targets, forward hooks for features, MixUp, EMA by swa_utils, autocast off."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, WeightedRandomSampler

torch.manual_seed(31)
np.random.seed(31)


def mlp(width, depth):
    layers = [nn.Linear(10, width), nn.BatchNorm1d(width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.BatchNorm1d(width), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, 4))


class FeatureExtractor:
    def __init__(self, model, index):
        self.features = None
        self.handle = model[index].register_forward_hook(self.save)

    def save(self, module, args, output):
        self.features = output


def mixup_data(x, y, alpha=0.4):
    lam = np.random.beta(alpha, alpha)
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index], y, y[index], lam


centres = torch.randn(4, 10)
labels = torch.randint(4, (160,))
dataset = TensorDataset(centres[labels] + torch.randn(160, 10), labels)
joined = ConcatDataset([Subset(dataset, range(0, 100)), Subset(dataset, range(100, 160))])
weights = 1.0 / torch.bincount(labels).float()[labels]
loader = DataLoader(joined, batch_size=16, sampler=WeightedRandomSampler(weights, 160))
teacher, student = mlp(48, 3), mlp(12, 2)
opt = torch.optim.RAdam(teacher.parameters(), lr=5e-3, weight_decay=1e-4)
for x, y in loader:
    mixed, y_a, y_b, lam = mixup_data(x, y)
    out = teacher(mixed)
    loss = lam * F.cross_entropy(out, y_a) + (1 - lam) * F.cross_entropy(out, y_b)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print('teacher %.5f' % loss.item())
teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)
hint_t, hint_s = FeatureExtractor(teacher, 2), FeatureExtractor(student, 2)
adapter = nn.Linear(12, 48)
opt = torch.optim.Adamax([
    {'params': student.parameters(), 'lr': 1e-2}, {'params': adapter.parameters(), 'lr': 5e-3}])
averaged = AveragedModel(student, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8))
swa_scheduler = SWALR(opt, swa_lr=0.005, anneal_epochs=5)
T = 4.0
for epoch in range(2):
    for x, y in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, dim=-1)
        logits = student(x)
        kd = F.kl_div(F.log_softmax(logits / T, dim=-1), soft, reduction='batchmean') * T * T
        hint = F.mse_loss(adapter(hint_s.features), hint_t.features)
        loss = 0.7 * kd + 0.3 * F.cross_entropy(logits, y) + 0.1 * hint
        opt.zero_grad()
        loss.backward()
        opt.step()
        averaged.update_parameters(student)
        print('student {:.5f} kd {:.5f} hint {:.5f}'.format(loss, kd, hint))
    swa_scheduler.step()
hint_s.handle.remove()
update_bn(loader, averaged)
averaged.eval()
with torch.no_grad():
    out = averaged(centres)
print(F.cross_entropy(out, torch.arange(4)), out.argmax(1), averaged.n_averaged)
