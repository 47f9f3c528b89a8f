"""A3C style: LSTMCell policy, old Variable idioms, an Adam subclass that fills its own state."""
import torch, torch.nn as nn, torch.nn.functional as F, numpy as np
from torch.autograd import Variable

torch.manual_seed(42)


def normalized_columns_initializer(weights, std=1.0):
    out = torch.randn(weights.size())
    out *= std / torch.sqrt(out.pow(2).sum(1, keepdim=True))
    return out


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Conv') != -1:
        ws = list(m.weight.data.size())
        fi = np.prod(ws[1:4])
        fo = np.prod(ws[2:4]) * ws[0]
        b = np.sqrt(6.0 / (fi + fo))
        m.weight.data.uniform_(-b, b)
        m.bias.data.fill_(0)
    elif classname.find('Linear') != -1:
        ws = list(m.weight.data.size())
        b = np.sqrt(6.0 / (ws[1] + ws[0]))
        m.weight.data.uniform_(-b, b)
        m.bias.data.fill_(0)


class ActorCritic(torch.nn.Module):
    def __init__(self, num_inputs, n_act):
        super(ActorCritic, self).__init__()
        self.conv1 = nn.Conv2d(num_inputs, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.lstm = nn.LSTMCell(8 * 4 * 4, 32)
        self.critic_linear = nn.Linear(32, 1)
        self.actor_linear = nn.Linear(32, n_act)
        self.apply(weights_init)
        self.actor_linear.weight.data = normalized_columns_initializer(self.actor_linear.weight.data, 0.01)
        self.actor_linear.bias.data.fill_(0)
        self.lstm.bias_ih.data.fill_(0)
        self.lstm.bias_hh.data.fill_(0)
        self.train()

    def forward(self, inputs):
        inputs, (hx, cx) = inputs
        x = F.elu(self.conv1(inputs))
        x = F.elu(self.conv2(x))
        x = x.view(-1, 8 * 4 * 4)
        hx, cx = self.lstm(x, (hx, cx))
        return self.critic_linear(hx), self.actor_linear(hx), (hx, cx)


class SharedAdam(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        super(SharedAdam, self).__init__(params, lr, betas, eps, weight_decay)
        for group in self.param_groups:
            for p in group['params']:
                state = self.state[p]
                state['step'] = torch.zeros(1)
                state['exp_avg'] = p.data.new().resize_as_(p.data).zero_()
                state['exp_avg_sq'] = p.data.new().resize_as_(p.data).zero_()

    def share_memory(self):
        for group in self.param_groups:
            for p in group['params']:
                s = self.state[p]
                s['step'].share_memory_()
                s['exp_avg'].share_memory_()


model = ActorCritic(1, 4)
model.share_memory()
opt = SharedAdam(model.parameters(), lr=1e-3)
opt.share_memory()
cx = Variable(torch.zeros(1, 32))
hx = Variable(torch.zeros(1, 32))
state = torch.rand(1, 16, 16)
for ep in range(12):
    cx, hx = cx.data, hx.data
    vals, lps, rews, ents = [], [], [], []
    for step in range(5):
        v, logit, (hx, cx) = model((Variable(state.unsqueeze(0)), (hx, cx)))
        prob = F.softmax(logit, dim=-1)
        lp = F.log_softmax(logit, dim=-1)
        ents.append(-(lp * prob).sum(1, keepdim=True))
        action = prob.multinomial(num_samples=1).data
        lp = lp.gather(1, Variable(action))
        state = torch.roll(state, int(action.numpy()[0, 0]), 1)
        r = max(min(float(state[0, :4].mean() - 0.5), 1), -1)
        vals.append(v)
        lps.append(lp)
        rews.append(r)
    R, _, _ = model((Variable(state.unsqueeze(0)), (hx, cx)))
    R = R.data
    vals.append(R)
    pl = 0
    vl = 0
    gae = torch.zeros(1, 1)
    for i in reversed(range(len(rews))):
        R = 0.99 * R + rews[i]
        adv = R - vals[i]
        vl = vl + 0.5 * adv.pow(2)
        dt = rews[i] + 0.99 * vals[i + 1].data - vals[i].data
        gae = gae * 0.99 + dt
        pl = pl - lps[i] * Variable(gae) - 0.01 * ents[i]
    opt.zero_grad()
    (pl + 0.5 * vl).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 40)
    opt.step()
    print(ep, pl.item(), vl.data[0, 0].numpy(), hx.norm().item())
