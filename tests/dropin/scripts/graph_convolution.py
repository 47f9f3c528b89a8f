"""Graph convolutions and graph attention on a citation graph made here, in full batches."""
import math
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter('bias', None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1. / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.mm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + ' (' + str(self.in_features) + ' -> ' + str(self.out_features) + ')'


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, n_heads, leaky_relu_slope=0.2):
        super().__init__()
        self.n_heads, self.n_hidden = n_heads, out_features
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features * n_heads)))
        self.a = nn.Parameter(torch.empty(size=(n_heads, 2 * out_features, 1)))
        self.leakyrelu = nn.LeakyReLU(leaky_relu_slope)
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, h, adj_mat):
        n = h.shape[0]
        h = torch.mm(h, self.W).view(n, self.n_heads, self.n_hidden).permute(1, 0, 2)
        source = torch.matmul(h, self.a[:, :self.n_hidden, :])
        target = torch.matmul(h, self.a[:, self.n_hidden:, :])
        e = self.leakyrelu(source + target.mT)
        attention = torch.where(adj_mat > 0, e, -9e16 * torch.ones_like(e))
        attention = F.dropout(F.softmax(attention, dim=-1), 0.4, training=self.training)
        return torch.matmul(attention, h).mean(dim=0)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double().sum()
    return correct / len(labels)


np.random.seed(42)
torch.manual_seed(42)
labels = torch.LongTensor(np.random.randint(0, 3, 60))
same = (labels[:, None] == labels[None, :]).numpy()
adj = np.random.rand(60, 60) < np.where(same, 0.15, 0.02)
adj = (adj | adj.T | np.eye(60, dtype=bool)).astype(np.float32)
rowsum = np.diag(1 / np.sqrt(adj.sum(1)))
adj = torch.FloatTensor(rowsum @ adj @ rowsum)
features = F.one_hot(labels, 3).float() + torch.randn(60, 3)
features = torch.cat([features, torch.randn(60, 5)], 1)
idx_train, idx_val = torch.arange(0, 60, 2), torch.LongTensor(range(1, 60, 2))
for model in (GCN(8, 16, 3, 0.5), GraphAttentionLayer(8, 3, 4)):
    print(model)
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(12):
        t = time.time()
        model.train()
        optimizer.zero_grad()
        output = F.log_softmax(model(features, adj), dim=1)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        acc_train = accuracy(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj).log_softmax(dim=1)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        print('Epoch: {:04d}'.format(epoch + 1), 'loss_train: {:.4f}'.format(loss_train.item()),
              'acc_train: {:.4f}'.format(acc_train.item()), 'loss_val: {:.4f}'.format(loss_val.item()))
