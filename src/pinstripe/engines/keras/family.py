"""Families that keras-hub's encoder layer computes exactly: how they name their tensors, and what is built in.

As in the configuration and modelling files of transformers 5.24.
"""

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["FAMILIES", "FillMaskHead", "KerasActivation", "KerasFamily", "LayerNames", "TextHead"]

KerasActivation = Literal["gelu", "gelu_tanh", "relu", "silu", "tanh"]


@dataclass(frozen=True, slots=True)
class LayerNames:
    """Names of one layer's tensors, without `.weight` and `.bias`, behind the layer's own."""

    layer: str
    """With {layer}; or {group} and {inner}, where layers share weights."""
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attention_output: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    intermediate: str = "intermediate.dense"
    output: str = "output.dense"
    norm: str = "output.LayerNorm"


@dataclass(frozen=True, slots=True)
class TextHead:
    """Logits of a text from its first token: a dense layer with an activation, then `output`."""

    dense: str
    activation: KerasActivation
    output: str = "classifier"


@dataclass(frozen=True, slots=True)
class FillMaskHead:
    """Logits of each token: dense layer, activation, layer norm, then the table of words (or `decoder`) and a bias."""

    dense: str
    norm: str
    decoder: str
    biases: tuple[str, ...]
    activation: KerasActivation | None = None
    """None for that of the encoder."""


@dataclass(frozen=True, slots=True)
class KerasFamily:
    """One `model_type`."""

    prefix: str
    """Name of the encoder in classes with a head."""
    layer: LayerNames
    text_head: TextHead
    fill_mask: FillMaskHead
    token_types: bool = True
    projection: str | None = None
    """Dense layer between embeddings and encoder, where they may differ in width."""
    shared_layers: bool = False
    activation: tuple[str, str] = ("hidden_act", "gelu")
    """Key in `config.json`, and its default."""
    epsilon_from_config: bool = True


_LAYER: Final = LayerNames("encoder.layer.{layer}")
_ROBERTA: Final = KerasFamily(
    prefix="roberta",
    layer=_LAYER,
    text_head=TextHead("classifier.dense", "tanh", "classifier.out_proj"),
    fill_mask=FillMaskHead(
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", ("lm_head.bias", "lm_head.decoder.bias"), "gelu"
    ),
)
FAMILIES: Final = {
    "albert": KerasFamily(
        prefix="albert",
        layer=LayerNames(
            "encoder.albert_layer_groups.{group}.albert_layers.{inner}",
            query="attention.query",
            key="attention.key",
            value="attention.value",
            attention_output="attention.dense",
            attention_norm="attention.LayerNorm",
            intermediate="ffn",
            output="ffn_output",
            norm="full_layer_layer_norm",
        ),
        text_head=TextHead("pooler", "tanh"),
        fill_mask=FillMaskHead(
            "predictions.dense",
            "predictions.LayerNorm",
            "predictions.decoder",
            ("predictions.bias", "predictions.decoder.bias"),
        ),
        projection="encoder.embedding_hidden_mapping_in",
        shared_layers=True,
        activation=("hidden_act", "gelu_new"),
    ),
    "bert": KerasFamily(
        prefix="bert",
        layer=_LAYER,
        text_head=TextHead("pooler.dense", "tanh"),
        fill_mask=FillMaskHead(
            "cls.predictions.transform.dense",
            "cls.predictions.transform.LayerNorm",
            "cls.predictions.decoder",
            ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        ),
    ),
    "camembert": _ROBERTA,
    "distilbert": KerasFamily(
        prefix="distilbert",
        layer=LayerNames(
            "transformer.layer.{layer}",
            query="attention.q_lin",
            key="attention.k_lin",
            value="attention.v_lin",
            attention_output="attention.out_lin",
            attention_norm="sa_layer_norm",
            intermediate="ffn.lin1",
            output="ffn.lin2",
            norm="output_layer_norm",
        ),
        text_head=TextHead("pre_classifier", "relu"),
        fill_mask=FillMaskHead("vocab_transform", "vocab_layer_norm", "vocab_projector", ("vocab_projector.bias",)),
        token_types=False,
        activation=("activation", "gelu"),
        epsilon_from_config=False,
    ),
    "electra": KerasFamily(
        prefix="electra",
        layer=_LAYER,
        text_head=TextHead("classifier.dense", "gelu", "classifier.out_proj"),
        fill_mask=FillMaskHead(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head",
            ("generator_lm_head.bias",),
            "gelu",
        ),
        projection="embeddings_project",
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
