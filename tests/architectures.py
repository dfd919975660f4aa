"""Small models of many architectures, as the library builds them from a configuration."""

import torch
import transformers

VOCABULARY, WIDTH, LAYERS, HEADS, POSITIONS, IGNORED = 97, 16, 2, 4, 64, -100
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Names of the same sizes, by family.
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 3 * WIDTH,
    "max_position_embeddings": POSITIONS,
    **ENDS,
}
GROUPED = COMMON | {"num_key_value_heads": 2}
GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": WIDTH,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_positions": POSITIONS,
}
GPT |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
BERT = COMMON | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "d_kv": 4,
    "d_ff": 3 * WIDTH,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "dropout_rate": 0.0,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
    "relative_attention_num_buckets": 8,
}
BART = {"vocab_size": VOCABULARY, "d_model": WIDTH, "max_position_embeddings": POSITIONS, "dropout": 0.0}
BART |= {
    f"{half}_{what}": size
    for half in ("encoder", "decoder")
    for what, size in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 3 * WIDTH))
}
BART |= {"pad_token_id": 0, "decoder_start_token_id": 2}
EXPERTS = GROUPED | {"num_experts_per_tok": 2, "num_local_experts": 4}

EXACT = {
    "GPT-2": ("GPT2LMHeadModel", GPT),
    "GPT-NeoX": ("GPTNeoXForCausalLM", COMMON),
    "GPT-J": ("GPTJForCausalLM", GPT | {"rotary_dim": 4}),
    "StarCoder 2": ("Starcoder2ForCausalLM", GROUPED | {"residual_dropout": 0.0, "embedding_dropout": 0.0}),
    "Llama": ("LlamaForCausalLM", GROUPED | {"tie_word_embeddings": False}),
    "Llama, tied": ("LlamaForCausalLM", GROUPED | {"tie_word_embeddings": True}),
    "Llama, classifier": ("LlamaForSequenceClassification", GROUPED | {"num_labels": 2}),
    "Qwen 2": ("Qwen2ForCausalLM", GROUPED),
    "Qwen 3": ("Qwen3ForCausalLM", GROUPED | {"head_dim": 4}),
    "Mistral": ("MistralForCausalLM", GROUPED | {"sliding_window": 8}),
    "Gemma": ("GemmaForCausalLM", GROUPED | {"head_dim": 4}),
    "Gemma 2": ("Gemma2ForCausalLM", GROUPED | {"head_dim": 4}),
    "Gemma 3": ("Gemma3ForCausalLM", GROUPED | {"head_dim": 4}),
    "Phi 3": ("Phi3ForCausalLM", GROUPED),
    "OPT": (
        "OPTForCausalLM",
        {k: v for k, v in COMMON.items() if k != "intermediate_size"}
        | {"ffn_dim": 3 * WIDTH, "word_embed_proj_dim": WIDTH, "dropout": 0.0},
    ),
    "BLOOM": (
        "BloomForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "pad_token_id": 0,
        }
        | {"hidden_dropout": 0.0, "attention_dropout": 0.0},
    ),
    "Falcon": ("FalconForCausalLM", COMMON | {"hidden_dropout": 0.0, "attention_dropout": 0.0}),
    "Falcon, new decoder": (
        "FalconForCausalLM",
        COMMON | {"num_kv_heads": 2, "new_decoder_architecture": True, "bias": True, "alibi": False},
    ),
    "StableLM": ("StableLmForCausalLM", GROUPED),
    "StableLM, norms per head": (
        "StableLmForCausalLM",
        GROUPED | {"qk_layernorm": True, "use_qkv_bias": True},
    ),
    "Cohere": ("CohereForCausalLM", GROUPED),
    "Cohere, norms per head": ("CohereForCausalLM", GROUPED | {"use_qk_norm": True}),
    "Granite": ("GraniteForCausalLM", GROUPED),
    "SmolLM 3": ("SmolLM3ForCausalLM", GROUPED),
    "Olmo": ("OlmoForCausalLM", GROUPED),
    "Olmo 2": ("Olmo2ForCausalLM", GROUPED),
    "Olmo 3": ("Olmo3ForCausalLM", GROUPED),
    "GLM 4": ("Glm4ForCausalLM", GROUPED | {"head_dim": 4}),
    "Nemotron": ("NemotronForCausalLM", GROUPED),
    "LFM 2": ("Lfm2ForCausalLM", GROUPED),
    "T5": ("T5ForConditionalGeneration", T5),
    "T5, gated, untied": (
        "T5ForConditionalGeneration",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "UMT5": ("UMT5ForConditionalGeneration", T5),
    "BART": ("BartForConditionalGeneration", BART),
    "BERT": ("BertForMaskedLM", BERT),
    "RoBERTa": ("RobertaForMaskedLM", BERT),
    "ELECTRA": ("ElectraForMaskedLM", BERT | {"embedding_size": WIDTH}),
    "ModernBERT": ("ModernBertForMaskedLM", COMMON | {"cls_token_id": 1, "sep_token_id": 2}),
    "DeBERTa v2": ("DebertaV2ForMaskedLM", BERT),
}
# What is refused, and why: a part of the message.
REFUSED = {
    "Mamba": (
        "MambaForCausalLM",
        {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "state_size": 4},
        "Conv1d",
    ),
    "Mixtral": ("MixtralForCausalLM", EXPERTS, "TopKRouter"),
    "Phi, experts": ("PhimoeForCausalLM", EXPERTS, "Linear that does something else"),
    "Olmo, experts": ("OlmoeForCausalLM", EXPERTS | {"num_experts": 4}, "TopKRouter"),
    "ALBERT": ("AlbertForMaskedLM", BERT | {"embedding_size": WIDTH}, "ran twice"),
    "MPNet": ("MPNetForMaskedLM", BERT, "first dimension"),
    "DeBERTa v2, relative": (
        "DebertaV2ForMaskedLM",
        BERT
        | {
            "relative_attention": True,
            "pos_att_type": "c2p|p2c",
            "position_buckets": 8,
            "share_att_key": True,
        },
        "first dimension",
    ),
}


def build(kind: str, options: dict, dtype: torch.dtype = torch.float64):
    """Return a fresh model whose biases and scales are not all alike."""
    model_class = getattr(transformers, kind)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**options)).to(dtype).train()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def batch_for(model, rows: int = 6, length: int = 12) -> dict[str, torch.Tensor]:
    """Return texts of different lengths with what the model is asked."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, VOCABULARY, (rows, length), generator=generator)
    kept = torch.full((rows,), length)
    kept[2], kept[4] = 2 * length // 3, length // 2
    seen = torch.arange(length)[None, :] < kept[:, None]
    batch = {"input_ids": ids.masked_fill(~seen, 0), "attention_mask": seen.long()}
    if model.config.is_encoder_decoder:
        labels = torch.randint(3, VOCABULARY, (rows, 9), generator=generator)
        labels[2, 5:] = IGNORED
    elif type(model).__name__.endswith("Classification"):
        labels = torch.randint(0, 2, (rows,), generator=generator)
    else:
        labels = ids.masked_fill(~seen, IGNORED)
        if type(model).__name__.endswith("MaskedLM"):
            asked = torch.rand(rows, length, generator=generator) < 0.4
            asked[:, 0] = True
            labels = labels.masked_fill(~asked, IGNORED)
    return batch | {"labels": labels}
