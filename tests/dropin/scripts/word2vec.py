"""Skip-gram with negative sampling, and GloVe: embeddings, bmm, logsigmoid, Counter, sparse gradients off."""
from collections import Counter

import numpy as np
import torch
from torch import FloatTensor as FT
from torch import LongTensor as LT
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(2)
np.random.seed(2)
TEXT = ("king queen man woman prince princess rules the land and the king loves the queen while "
        "man and woman work the land for prince and princess").split() * 4
vocab = sorted(set(TEXT))
word2idx = {w: i for i, w in enumerate(vocab)}
counts = np.array([Counter(TEXT)[w] for w in vocab], dtype=np.float64)


class Word2Vec(nn.Module):
    def __init__(self, vocab_size, embedding_size=12, padding_idx=0):
        super(Word2Vec, self).__init__()
        self.ivectors = nn.Embedding(vocab_size, embedding_size, padding_idx=padding_idx)
        self.ovectors = nn.Embedding(vocab_size, embedding_size, padding_idx=padding_idx)
        init = FT(vocab_size - 1, embedding_size).uniform_(-0.5 / embedding_size, 0.5 / embedding_size)
        self.ivectors.weight = nn.Parameter(torch.cat([torch.zeros(1, embedding_size), init]))
        self.ivectors.weight.requires_grad = True
        self.ovectors.weight.data.mul_(0.1)


class SGNS(nn.Module):
    def __init__(self, embedding, vocab_size, n_negs=5, weights=None):
        super(SGNS, self).__init__()
        self.embedding, self.vocab_size, self.n_negs = embedding, vocab_size, n_negs
        wf = np.power(weights, 0.75)
        self.weights = FT(wf / wf.sum())

    def forward(self, iword, owords):
        batch_size, context_size = owords.size(0), owords.size(1)
        nwords = torch.multinomial(
            self.weights, batch_size * context_size * self.n_negs, replacement=True).view(batch_size, -1)
        ivectors = self.embedding.ivectors(iword).unsqueeze(2)
        ovectors = self.embedding.ovectors(owords)
        nvectors = self.embedding.ovectors(nwords).neg()
        oloss = torch.bmm(ovectors, ivectors).squeeze(-1).sigmoid().log().mean(1)
        nloss = torch.bmm(nvectors, ivectors).squeeze(-1).sigmoid().log().view(
            -1, context_size, self.n_negs).sum(2).mean(1)
        return -(oloss + nloss).mean()


class Windows(Dataset):
    def __init__(self, ids, size=2):
        self.data = [(ids[i], ids[i - size:i] + ids[i + 1:i + 1 + size]) for i in range(size, len(ids) - size)]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        iword, owords = self.data[idx]
        return iword, np.array(owords)


ids = [word2idx[w] for w in TEXT]
model = Word2Vec(len(vocab))
sgns = SGNS(model, len(vocab), weights=counts)
optim = torch.optim.Adagrad(sgns.parameters(), lr=0.1)
for epoch in range(2):
    for iword, owords in DataLoader(Windows(ids), batch_size=10, shuffle=True):
        loss = sgns(iword, owords)
        optim.zero_grad()
        loss.backward()
        optim.step()
        print("[e%d] loss: %.5f" % (epoch, loss.item()))
vectors = model.ivectors.weight.data.cpu().numpy()
cosine = torch.cosine_similarity(LT([1, 2]).float(), torch.from_numpy(vectors[:2, :2]), dim=0)
print(vectors.shape, float(np.abs(vectors).sum()), cosine.shape)
