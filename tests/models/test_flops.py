"""Floating-point operations of a forward pass, against torch's own count of what it runs."""

from typing import Any

import pytest

from pinstripe.models import Network, Task, forward_flops

LENGTHS = (7, 12, 31)
CLASSES: dict[Task, str] = {
    "embedding": "AutoModel",
    "classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "fill-mask": "AutoModelForMaskedLM",
}


def _network(model_type: str = "bert", task: Task = "embedding", **changes: Any) -> Network:
    shape = {"vocab_size": 50, "hidden_size": 32, "layers": 3, "heads": 4, "intermediate_size": 80, **changes}
    labels = ("a", "b", "c") if task in {"classification", "token-classification"} else ()
    return Network(
        name="tiny",
        directory="",
        fingerprint="",
        model_type=model_type,
        task=task,
        positions=64,
        max_tokens=64,
        labels=labels,
        **shape,
    )


def _counted(model_type: str, task: Task) -> int:
    """What torch counts while transformers' model runs texts one by one."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415 - torch may be absent

    config = transformers.AutoConfig.for_model(
        model_type,
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=80,
        max_position_embeddings=64,
        pad_token_id=0,
        num_labels=2 if task == "question-answering" else 3,
        attn_implementation="eager",
        **({"head_dim": 8} if model_type == "nomic_bert" else {}),
        **({"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 80} if model_type == "distilbert" else {}),
        **(
            {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
            if "modern" in model_type
            else {}
        ),
    )
    model = getattr(transformers, CLASSES[task]).from_config(config).eval()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # its output is not used for embeddings
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        for length in LENGTHS:
            model(input_ids=torch.full((1, length), 5))
    return int(counter.get_total_flops())


@pytest.mark.parametrize("task", list(CLASSES))
@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert", "mpnet"])
def test_count_is_what_torch_counts(model_type: str, task: Task) -> None:
    """Torch counts the products of each operator as it runs; the formula comes to the same number, to the last one."""
    assert forward_flops(_network(model_type, task), LENGTHS) == _counted(model_type, task)


@pytest.mark.parametrize(
    ("model_type", "task"), [("nomic_bert", "embedding"), *(("modernbert", task) for task in CLASSES)]
)
def test_gated_families_are_counted_as_torch_counts_them(model_type: str, task: Task) -> None:
    """Their feed-forward part has three matrices, and ModernBERT's heads have a dense layer for each token."""
    assert forward_flops(_network(model_type, task), LENGTHS) == _counted(model_type, task)


def test_bert_base_is_known_by_heart() -> None:
    """BERT-base takes 2 x 85 million operations a token for its weights: 12 x (4 x 768² + 2 x 768 x 3072) = 84.9e6.

    Attention at 512 tokens adds 4 x 512 x 768 x 12 = 18.9 million a token.
    """
    network = _network(hidden_size=768, layers=12, heads=12, intermediate_size=3072, vocab_size=30522)
    flops = forward_flops(network, [512])

    assert flops == 512 * (2 * 84_934_656 + 18_874_368)


def test_texts_add_up_and_padding_is_not_counted() -> None:
    """Ten texts of different lengths take what they take one by one."""
    network = _network()
    each = [forward_flops(network, [length]) for length in range(1, 11)]

    assert forward_flops(network, range(1, 11)) == sum(one for one in each if one is not None)


@pytest.mark.parametrize(
    ("model_type", "task"), [("mobilebert", "embedding"), ("deberta-v2", "embedding"), ("albert", "fill-mask")]
)
def test_what_is_made_differently_is_not_guessed(model_type: str, task: Task) -> None:
    """A family whose layers have other matrices gets no number, rather than a wrong one."""
    assert forward_flops(_network(model_type, task), LENGTHS) is None
