"""A recurrent language model: batchify, tied embeddings, hidden state repackaged, clipping by hand."""
import math
import time

import torch
import torch.nn as nn

torch.manual_seed(1111)
TEXT = ("the quick brown fox jumps over the lazy dog while the small cat sleeps under the old tree "
        "and the slow river runs past the quiet town where people walk along the narrow street ") * 8


class Dictionary(object):
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ['LSTM', 'GRU']:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            nonlinearity = {'RNN_TANH': 'tanh', 'RNN_RELU': 'relu'}[rnn_type]
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity=nonlinearity, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return nn.functional.log_softmax(decoded.view(-1, self.ntoken), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == 'LSTM':
            return (weight.new_zeros(self.nlayers, bsz, self.nhid),
                    weight.new_zeros(self.nlayers, bsz, self.nhid))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt=7):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


dictionary = Dictionary()
ids = torch.tensor([dictionary.add_word(word) for word in TEXT.split() + ['<eos>']]).type(torch.int64)
data = batchify(ids, 4)
criterion = nn.NLLLoss()
for rnn_type, tied in [('LSTM', True), ('GRU', False), ('RNN_TANH', False)]:
    model = RNNModel(rnn_type, len(dictionary), 16, 16, 2, 0.2, tied)
    lr = 5.0
    total_loss = 0.
    start_time = time.time()
    hidden = model.init_hidden(4)
    model.train()
    for batch, i in enumerate(range(0, data.size(0) - 1, 7)):
        x, targets = get_batch(data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(x, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
        print('| {} | {:3d} batches | loss {:5.4f} | ppl {:8.3f}'.format(
            rnn_type, batch, loss.item(), math.exp(loss.item())))
    model.eval()
    with torch.no_grad():
        input = torch.randint(len(dictionary), (1, 1), dtype=torch.long)
        hidden = model.init_hidden(1)
        words = []
        for i in range(6):
            output, hidden = model(input, hidden)
            word_weights = output.squeeze().div(0.5).exp().cpu()
            word_idx = torch.multinomial(word_weights, 1)[0]
            input.fill_(word_idx)
            words.append(dictionary.idx2word[word_idx])
        print(' '.join(words))
