"""Sequence to sequence with Bahdanau attention: GRU, teacher forcing, topk, two optimizers, padding."""
from __future__ import unicode_literals, print_function, division
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = torch.device("cuda" if torch.cuda.is_available() and False else "cpu")
SOS_token, EOS_token, MAX_LENGTH = 0, 1, 8
random.seed(1)
torch.manual_seed(1)


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super(EncoderRNN, self).__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=2)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.merge = nn.Linear(2 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input, lengths):
        embedded = self.dropout(self.embedding(input))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True, padding_value=0.0)
        hidden = torch.tanh(self.merge(torch.cat([hidden[0], hidden[1]], dim=-1)))[None]
        return self.merge(output), hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super(BahdanauAttention, self).__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1).masked_fill(mask[:, None], -1e9)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super(AttnDecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, encoder_hidden, mask, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden = encoder_hidden
        decoder_outputs, attentions = [], []
        for i in range(MAX_LENGTH):
            embedded = self.dropout(self.embedding(decoder_input))
            query = decoder_hidden.permute(1, 0, 2)
            context, attn_weights = self.attention(query, encoder_outputs, mask)
            output, decoder_hidden = self.gru(torch.cat((embedded, context), dim=2), decoder_hidden)
            decoder_output = self.out(output)
            decoder_outputs.append(decoder_output)
            attentions.append(attn_weights)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = decoder_output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


def pairs(n):
    sources, targets = [], []
    for _ in range(n):
        words = [random.randint(3, 11) for _ in range(random.randint(3, MAX_LENGTH - 1))]
        sources.append(torch.tensor(words + [EOS_token]))
        targets.append(torch.tensor((words[::-1] + [EOS_token] + [2] * MAX_LENGTH)[:MAX_LENGTH]))
    return pad_sequence(sources, batch_first=True, padding_value=2), torch.stack(targets), \
        torch.tensor([len(s) for s in sources])


encoder = EncoderRNN(12, 16).to(device)
decoder = AttnDecoderRNN(16, 12).to(device)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.005)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.005)
criterion = nn.NLLLoss(ignore_index=2)
for step in range(20):
    source, target, lengths = pairs(8)
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    outputs, hidden = encoder(source, lengths)
    mask = source[:, :outputs.size(1)] == 2
    log_probs, _ = decoder(outputs, hidden, mask, target if random.random() < 0.7 else None)
    loss = criterion(log_probs.view(-1, log_probs.size(-1)), target.view(-1))
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    print('%d %.4f' % (step, loss.item()))
encoder.eval()
decoder.eval()
with torch.no_grad():
    source, target, lengths = pairs(2)
    log_probs, attention = decoder(*encoder(source, lengths), source == 2)
    print(log_probs.argmax(-1), attention.sum(-1).mean())
