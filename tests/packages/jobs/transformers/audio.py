"""Models of sound from a folder: recognition, classification, speech."""

import numpy as np
import torch
import transformers
from steps import step

transformers.logging.set_verbosity_error()
CONVOLUTIONS = {
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 2,
}
WAV2VEC2 = CONVOLUTIONS | {
    "vocab_size": 12,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.1,
    "mask_time_prob": 0.0,
    "pad_token_id": 0,
}
WAVE = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 800))).float()
KINDS = {
    "wav2vec2": {},
    "wav2vec2-conformer": {"conv_depthwise_kernel_size": 3, "position_embeddings_type": "rotary"},
    "hubert": {},
    "wavlm": {},
    "unispeech": {},
    "unispeech-sat": {},
    "sew": {"squeeze_factor": 2},
    "sew-d": {"squeeze_factor": 2, "max_position_embeddings": 64, "position_buckets": 16},
    "data2vec-audio": {},
}

for name, sizes in KINDS.items():

    @step(f"{name}: CTC loss, gradients, classification of sounds", name, sizes)
    def _(name, sizes):
        config = transformers.AutoConfig.for_model(name, **WAV2VEC2 | sizes)
        transformers.AutoModelForCTC.from_config(config).save_pretrained(name)
        model = transformers.AutoModelForCTC.from_pretrained(name).eval()
        output = model(WAVE, labels=torch.tensor([[3, 4, 5], [7, 7, -100]]))
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        kind = transformers.AutoModelForAudioClassification
        classifier = kind.from_pretrained(name, num_labels=3).eval()
        return output.logits, output.loss, torch.stack(gradients), classifier(WAVE).logits


@step("wav2vec2: pretraining with negatives")
def _():
    config = transformers.Wav2Vec2Config(
        **WAV2VEC2
        | {"codevector_dim": 8, "proj_codevector_dim": 8, "num_codevectors_per_group": 4}
        | {"mask_time_prob": 0.05}
    )
    model = transformers.Wav2Vec2ForPreTraining(config).eval()
    length = model._get_feat_extract_output_lengths(800).item()
    mask = torch.arange(length).expand(2, -1) % 3 == 0
    negatives = torch.arange(2 * length * 5).view(2, length, 5) % (2 * length)
    output = model(WAVE, mask_time_indices=mask, sampled_negative_indices=negatives)
    output.loss.backward()
    return output.loss, output.contrastive_loss, output.diversity_loss


@step("wav2vec2: feature extractor and masked padding")
def _():
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True)
    extractor.save_pretrained("extractor")
    extractor = transformers.AutoFeatureExtractor.from_pretrained("extractor")
    waves = [WAVE[0].numpy(), WAVE[1, :500].numpy()]
    inputs = extractor(waves, sampling_rate=16000, padding=True, return_tensors="pt")
    model = transformers.Wav2Vec2Model.from_pretrained("wav2vec2").eval()
    return inputs, model(**inputs).last_hidden_state


WHISPER = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_source_positions": 50,
    "max_target_positions": 40,
    "num_mel_bins": 16,
    "init_std": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "begin_suppress_tokens": None,
}


@step("Whisper: spectrogram, loss, gradients, greedy and beam search")
def _():
    extractor = transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    extractor.save_pretrained("whisper")
    config = transformers.WhisperConfig(**WHISPER)
    transformers.WhisperForConditionalGeneration(config).save_pretrained("whisper")
    extractor = transformers.AutoFeatureExtractor.from_pretrained("whisper")
    model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained("whisper").eval()
    inputs = extractor([each.numpy() for each in WAVE], sampling_rate=16000, return_tensors="pt")
    output = model(**inputs, labels=torch.tensor([[4, 5, 6, 2], [7, 8, 2, -100]]))
    output.loss.backward()
    gradients = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None])
    greedy = model.generate(inputs.input_features, max_new_tokens=6)
    beams = model.generate(inputs.input_features, max_new_tokens=6, num_beams=2)
    return inputs.input_features, output.loss, output.logits, gradients, greedy, beams


@step("Audio Spectrogram Transformer: classification")
def _():
    config = transformers.ASTConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_length=32,
        num_mel_bins=16,
        patch_size=8,
        frequency_stride=8,
        time_stride=8,
        num_labels=3,
    )
    model = transformers.ASTForAudioClassification(config).eval()
    spectrogram = WAVE[:, :512].reshape(2, 32, 16)
    output = model(spectrogram, labels=torch.tensor([0, 2]))
    output.loss.backward()
    return output.loss, output.logits


@step("CLAP: similarity of sound and text")
def _():
    text = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    sound = {
        "hidden_size": 32,
        "patch_embeds_hidden_size": 8,
        "depths": [1, 1],
        "num_attention_heads": [2, 2],
        "spec_size": 32,
        "num_mel_bins": 8,
        "window_size": 2,
        "patch_size": 4,
        "patch_stride": [4, 4],
    }
    config = transformers.ClapConfig(
        text_config=text | {"num_attention_heads": 4, "projection_dim": 16},
        audio_config=sound | {"hidden_size": 16, "projection_dim": 16, "enable_fusion": False},
        projection_dim=16,
    )
    model = transformers.ClapModel(config).eval()
    output = model(
        input_ids=torch.tensor([[5, 9, 33], [8, 20, 64]]),
        input_features=WAVE[:, :512].reshape(2, 1, 64, 8),
        return_loss=True,
    )
    output.loss.backward()
    return output.loss, output.logits_per_audio


@step("EnCodec: codes and the wave made of them")
def _():
    config = transformers.EncodecConfig(
        num_filters=4,
        hidden_size=8,
        codebook_size=16,
        codebook_dim=8,
        upsampling_ratios=[4, 2],
        num_lstm_layers=1,
        target_bandwidths=[12.0],
        norm_type="weight_norm",
    )
    model = transformers.EncodecModel(config).eval()
    output = model(WAVE[:, None], bandwidth=12.0)
    return output.audio_codes, output.audio_values


@step("SpeechT5: speech from text")
def _():
    config = transformers.SpeechT5Config(
        vocab_size=30,
        hidden_size=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=8,
        speech_decoder_prenet_units=16,
        speech_decoder_postnet_units=16,
        speech_decoder_prenet_dropout=0.0,
        speaker_embedding_dim=4,
        positional_dropout=0.0,
    )
    model = transformers.SpeechT5ForTextToSpeech(config).eval()
    tokens, voice = torch.tensor([[5, 9, 13, 21, 2]]), torch.ones(1, 4)
    return model(
        tokens, decoder_input_values=torch.ones(1, 4, 8), speaker_embeddings=voice
    ).spectrogram
