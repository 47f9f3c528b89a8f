"""Reading digits in a line: convolutions, a bidirectional LSTM, CTC loss, greedy decoding, RMSprop."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as data


class BidirectionalLSTM(nn.Module):
    def __init__(self, nIn, nHidden, nOut):
        super(BidirectionalLSTM, self).__init__()
        self.rnn = nn.LSTM(nIn, nHidden, bidirectional=True)
        self.embedding = nn.Linear(nHidden * 2, nOut)

    def forward(self, input):
        recurrent, _ = self.rnn(input)
        T, b, h = recurrent.size()
        return self.embedding(recurrent.view(T * b, h)).view(T, b, -1)


class CRNN(nn.Module):
    def __init__(self, nclass=6):
        super(CRNN, self).__init__()
        cnn = nn.Sequential()
        cnn.add_module('conv0', nn.Conv2d(1, 8, 3, padding=1))
        cnn.add_module('relu0', nn.ReLU(True))
        cnn.add_module('pooling0', nn.MaxPool2d(2, 2))
        cnn.add_module('conv1', nn.Conv2d(8, 12, 3, padding=1))
        cnn.add_module('batchnorm1', nn.BatchNorm2d(12))
        cnn.add_module('relu1', nn.LeakyReLU(0.2, inplace=True))
        cnn.add_module('pooling1', nn.MaxPool2d((2, 2), (2, 1), (0, 1)))
        cnn.add_module('conv2', nn.Conv2d(12, 16, (2, 3), padding=(0, 1)))
        self.cnn = cnn
        self.rnn = nn.Sequential(BidirectionalLSTM(16, 12, 12), BidirectionalLSTM(12, 12, nclass))

    def forward(self, input):
        conv = self.cnn(input)
        b, c, h, w = conv.size()
        assert h == 1, "the height of conv must be 1"
        conv = conv.squeeze(2).permute(2, 0, 1)
        return F.log_softmax(self.rnn(conv), dim=2)


class Lines(data.Dataset):
    def __init__(self, n):
        self.glyphs = (torch.rand(5, 8, 5) > 0.5).float()
        self.labels = [torch.randint(1, 6, (int(torch.randint(1, 4, ())),)) for _ in range(n)]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.zeros(1, 8, 20)
        for place, label in enumerate(self.labels[i]):
            image[0, :, 6 * place:6 * place + 5] = self.glyphs[label - 1]
        return image, self.labels[i]


def collate(batch):
    images, labels = zip(*batch)
    return torch.stack(images), torch.cat(labels), torch.IntTensor([len(label) for label in labels])


torch.manual_seed(21)
crnn = CRNN()
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.RMSprop(crnn.parameters(), lr=0.003)
loader = data.DataLoader(Lines(80), batch_size=8, shuffle=True, collate_fn=collate)
for epoch in range(2):
    for i, (images, text, length) in enumerate(loader):
        preds = crnn(images)
        preds_size = torch.full((images.size(0),), preds.size(0), dtype=torch.int32)
        cost = criterion(preds, text, preds_size, length)
        crnn.zero_grad()
        cost.backward()
        optimizer.step()
        print('[%d][%d/%d] Loss: %f' % (epoch, i, len(loader), cost.item()))
_, best = preds.max(2)
for sequence in best.transpose(1, 0)[:3].tolist():
    raw = [c for i, c in enumerate(sequence) if c and (i == 0 or c != sequence[i - 1])]
    print('%d characters' % len(raw), *raw)
