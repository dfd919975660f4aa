"""For which models a run states an epsilon: lists to be read.

An epsilon holds if the gradient of each row follows from that row alone. The tests compare the clipped sum
of every architecture listed here, with one backward pass for each unit. A run with any other model, layer,
option or precision trains and claims its budget.

Only what is looked at here is seen: class names of the model and its layers, replaced `forward` methods,
hooks, options of the configuration, and the precision. Someone who edits a library, or an object of a listed
class, states an epsilon that was not checked.
"""

from collections.abc import Iterator

from torch import nn
from transformers import PreTrainedTokenizerBase

from privhelpers.dpsgd._checks import TOLERANCE, dtypes_of

# By package of transformers.models. The layers of these packages are supported as well.
ARCHITECTURES = {
    "bart": ("BartForConditionalGeneration",),
    "bert": ("BertForMaskedLM", "BertForSequenceClassification"),
    "bloom": ("BloomForCausalLM",),
    "cohere": ("CohereForCausalLM",),
    "deberta_v2": ("DebertaV2ForMaskedLM",),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertForSequenceClassification"),
    "electra": ("ElectraForMaskedLM",),
    "falcon": ("FalconForCausalLM",),
    "gemma": ("GemmaForCausalLM",),
    "gemma2": ("Gemma2ForCausalLM",),
    "gemma3": ("Gemma3ForCausalLM",),
    "glm4": ("Glm4ForCausalLM",),
    "gpt2": ("GPT2LMHeadModel", "GPT2ForSequenceClassification"),
    "gpt_neox": ("GPTNeoXForCausalLM",),
    "gptj": ("GPTJForCausalLM",),
    "granite": ("GraniteForCausalLM",),
    "lfm2": ("Lfm2ForCausalLM",),
    "llama": ("LlamaForCausalLM", "LlamaForSequenceClassification"),
    "mistral": ("MistralForCausalLM",),
    "modernbert": ("ModernBertForMaskedLM",),
    "nemotron": ("NemotronForCausalLM",),
    "olmo": ("OlmoForCausalLM",),
    "olmo2": ("Olmo2ForCausalLM",),
    "olmo3": ("Olmo3ForCausalLM",),
    "opt": ("OPTForCausalLM",),
    "phi3": ("Phi3ForCausalLM",),
    "qwen2": ("Qwen2ForCausalLM",),
    "qwen3": ("Qwen3ForCausalLM",),
    "roberta": ("RobertaForMaskedLM",),
    "smollm3": ("SmolLM3ForCausalLM",),
    "stablelm": ("StableLmForCausalLM",),
    "starcoder2": ("Starcoder2ForCausalLM",),
    "t5": ("T5ForConditionalGeneration",),
    "umt5": ("UMT5ForConditionalGeneration",),
}
# Layers outside of these packages, by module and class.
LAYERS = {
    "torch.nn.modules.activation": ("ReLU", "Tanh", "GELU", "SiLU"),
    "torch.nn.modules.container": ("ModuleList", "ModuleDict", "ParameterDict", "Sequential"),
    "torch.nn.modules.dropout": ("Dropout",),
    "torch.nn.modules.linear": ("Identity", "Linear"),
    "torch.nn.modules.loss": ("CrossEntropyLoss",),
    "torch.nn.modules.normalization": ("LayerNorm", "RMSNorm"),
    "torch.nn.modules.sparse": ("Embedding",),
    "transformers.activations": (
        *("GELUActivation", "GELUTanh", "NewGELUActivation", "ReLUSquaredActivation", "SiLUActivation"),
    ),
    "privhelpers.models.activation": ("TanhGELU",),
    "transformers.pytorch_utils": ("Conv1D",),
    "peft.peft_model": ("PeftModel", "PeftModelForCausalLM"),
    "peft.tuners.lora.model": ("LoraModel",),
    "peft.tuners.lora.layer": ("Linear",),
}
# Options with which rows of a batch share a random number: a layer is dropped for all of them, or one dropout
# mask serves all relative positions. The rows of a batch depend on which units were drawn.
SHARED_RANDOMNESS = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop", "relative_attention")
ROTATIONS = ("default", "linear", "llama3", "yarn")  # others follow the longest row of a batch
ATTENTIONS = ("eager", "sdpa")
HOOKS = ("PreTrainedModel.enable_input_require_grads.<locals>.make_inputs_require_grads",)
_HOOK_TABLES = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def unsupported_parts(model: nn.Module) -> list[str]:
    """Return the parts of a model that are not on the lists, in words; empty if an epsilon can be stated."""
    base = _base(model)
    parts = [] if _is_listed(base) else [f"architecture: {type(base).__name__}"]
    parts += [f"layer: {type(one).__name__}" for one in model.modules() if not _is_supported_layer(one)]
    parts += [f"hook: {name}" for module in model.modules() for name in _replaced_code(module)]
    parts += [f"option: {option}" for option in _unsupported_options(base.config)]
    parts += [f"precision: {dtype}" for dtype in sorted(map(str, dtypes_of(model) - set(TOLERANCE)))]
    return list(dict.fromkeys(parts))


def is_supported_tokenizer(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer is of a class of transformers, which encodes each note by itself."""
    return type(tokenizer).__module__.startswith("transformers.")


def reads_backward(model: nn.Module) -> bool:
    """Return whether padding after a row must be masked; a listed causal model never looks at it."""
    base = _base(model)
    return not (_is_listed(base) and type(base).__name__.endswith(("ForCausalLM", "LMHeadModel")))


def _base(model: nn.Module) -> nn.Module:
    """Return the model inside of adapters."""
    return model.get_base_model() if type(model).__module__ == "peft.peft_model" else model


def _package(part: nn.Module) -> str:
    """Return the package of transformers.models that a class lies in, or ""."""
    prefix, _, name = type(part).__module__.rpartition(".modeling_")
    return name if prefix == f"transformers.models.{name}" else ""


def _is_listed(model: nn.Module) -> bool:
    return type(model).__name__ in ARCHITECTURES.get(_package(model), ())


def _is_supported_layer(layer: nn.Module) -> bool:
    return _package(layer) in ARCHITECTURES or type(layer).__name__ in LAYERS.get(type(layer).__module__, ())


def _replaced_code(module: nn.Module) -> Iterator[str]:
    """Yield the names of what runs in a module besides its class: hooks, and a `forward` of its own."""
    if "forward" in vars(module):
        yield f"{type(module).__name__}.forward"
    for table in _HOOK_TABLES:
        for hook in getattr(module, table).values():
            name = getattr(hook, "__qualname__", type(hook).__qualname__)
            if name not in HOOKS:
                yield name


def _unsupported_options(config: object) -> Iterator[str]:
    """Yield the options with which rows of a batch are not apart, or with another attention."""
    for name in SHARED_RANDOMNESS:
        if getattr(config, name, False):
            yield f"{name} = {getattr(config, name)}"
    rotation = getattr(config, "rope_parameters", None) or {}
    each = rotation.values() if all(isinstance(one, dict) for one in rotation.values()) else (rotation,)
    for one in each:
        if one.get("rope_type", "default") not in ROTATIONS:
            yield f"rope_type = {one['rope_type']}"
    if config._attn_implementation not in ATTENTIONS:
        yield f"attention = {config._attn_implementation}"
