"""Sequence tagging: bidirectional GRU, linear-chain CRF by logsumexp, masks, Viterbi decoding."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.nn.utils.rnn import pad_sequence


class CRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(num_tags))
        self.end = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def forward(self, emissions, tags, mask):
        return (self.score(emissions, tags, mask) - self.normalizer(emissions, mask)).sum() / mask.type_as(emissions).sum()

    def score(self, emissions, tags, mask):
        length, batch = tags.shape
        m, rows = mask.type_as(emissions), torch.arange(batch)
        score = self.start[tags[0]] + emissions[0, rows, tags[0]]
        for i in range(1, length):
            score += self.transitions[tags[i - 1], tags[i]] * m[i]
            score += emissions[i, rows, tags[i]] * m[i]
        last = mask.long().sum(dim=0) - 1
        return score + self.end[tags[last, rows]]

    def normalizer(self, emissions, mask):
        score = self.start + emissions[0]
        for i in range(1, emissions.size(0)):
            following = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            score = torch.where(mask[i].unsqueeze(1), torch.logsumexp(following, dim=1), score)
        return torch.logsumexp(score + self.end, dim=1)

    @torch.no_grad()
    def decode(self, emissions, mask):
        score, history = self.start + emissions[0], []
        for i in range(1, emissions.size(0)):
            following, indices = (score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)).max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), following, score)
            history.append(indices)
        paths = []
        for b, end in enumerate(mask.long().sum(dim=0) - 1):
            best = [(score[b] + self.end).argmax(dim=0).item()]
            for h in reversed(history[:end]):
                best.append(h[b][best[-1]].item())
            paths.append(best[::-1])
        return paths


class Tagger(nn.Module):
    def __init__(self, words, tags, dim=8):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


torch.manual_seed(4)
sentences = [torch.randint(1, 20, (n,)) for n in (5, 7, 3, 6)]
x = pad_sequence(sentences)
y, mask = x % 3, x.ne(0)
tagger, crf = Tagger(20, 3), CRF(3)
optimizer = optim.Adam([*tagger.parameters(), *crf.parameters()], lr=0.02)
for step in range(20):
    optimizer.zero_grad()
    loss = -crf(tagger(x), y, mask)
    loss.backward()
    optimizer.step()
    print(f'step {step:2d} nll {loss.item():.5f} start {crf.start.detach().norm():.5f}')
correct = total = 0
for path, sentence in zip(crf.decode(tagger(x), mask), sentences):
    correct += sum(int(p == t) for p, t in zip(path, (sentence % 3).tolist()))
    total += len(path)
print('accuracy', correct / total, 'transitions', crf.transitions)
