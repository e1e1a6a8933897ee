"""What a model's own files say, overrides of it, and directories that are no models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pinstripe import models
from pinstripe.errors import ModelError

Build = Callable[..., Path]
THREE = {"id2label": {"0": "no", "1": "maybe", "2": "yes"}}
CLASSIFIER = ["BertForSequenceClassification"]


def message(directory: Path, **overrides: Any) -> str:
    """Return what resolving a directory complains of; always one line."""
    with pytest.raises(ModelError) as caught:
        models.resolve(str(directory), overrides=models.Overrides(**overrides))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def modules(*kinds: str) -> dict[str, Any]:
    """Return `modules.json` with these modules, in the folders that sentence-transformers uses."""
    entries = [
        {"type": f"sentence_transformers.models.{kind}", "path": "" if kind == "Transformer" else f"{number}_{kind}"}
        for number, kind in enumerate(kinds)
    ]
    return {"modules.json": entries}


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertModel", "embedding"),
        ("BertForSequenceClassification", "classification"),
        ("XLMRobertaForTokenClassification", "token-classification"),
        ("RobertaForMaskedLM", "fill-mask"),
        ("DistilBertForQuestionAnswering", "question-answering"),
    ],
)
def test_the_architecture_gives_the_task(build: Build, architecture: str, task: str) -> None:
    """Transformers names its classes by what they are for."""
    assert models.resolve(str(build(architectures=[architecture]))).task == task


def test_no_architecture_is_a_bare_encoder(build: Build) -> None:
    """As transformers' AutoModel would load it, with mean pooling as sentence-transformers adds."""
    network = models.resolve(str(build(architectures=None)))
    assert (network.task, network.pooling, network.normalize) == ("embedding", ("mean",), False)


def test_a_head_without_a_task_is_refused_but_can_be_overridden(build: Build) -> None:
    """A model for next-sentence prediction is an encoder all the same."""
    directory = build(architectures=["BertForNextSentencePrediction"])
    assert "no task is known" in message(directory)
    assert models.resolve(str(directory), overrides=models.Overrides(task="embedding")).task == "embedding"


def test_a_masked_language_model_with_pooling_embeds(build: Build) -> None:
    """Some sentence-transformers models keep the name of the class that they were trained from."""
    pooling = {"1_Pooling/config.json": {"word_embedding_dimension": 8, "pooling_mode_cls_token": True}}
    directory = build(modules("Transformer", "Pooling") | pooling, architectures=["BertForMaskedLM"])
    assert models.resolve(str(directory)).pooling == ("cls",)
    assert models.resolve(str(directory), overrides=models.Overrides(task="fill-mask")).pooling == ()


@pytest.mark.parametrize(
    ("config", "activation"),
    [
        ({}, "softmax"),
        ({"problem_type": "single_label_classification"}, "softmax"),
        ({"problem_type": "multi_label_classification"}, "sigmoid"),
        ({"problem_type": "regression"}, "identity"),
    ],
)
def test_classification_scores_as_the_pipeline_of_transformers(
    build: Build, config: dict[str, str], activation: str
) -> None:
    """The problem type decides, and labels come by index."""
    network = models.resolve(str(build(architectures=CLASSIFIER, **THREE, **config)))
    assert (network.labels, network.activation) == (("no", "maybe", "yes"), activation)


OLD_KEY = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
NEW_KEY = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh", "version": "4.1.0"}}


@pytest.mark.parametrize(("config", "activation"), [({}, "sigmoid"), (OLD_KEY, "identity"), (NEW_KEY, "tanh")])
def test_one_label_is_a_reranker_scored_as_crossencoder_does(
    build: Build, config: dict[str, Any], activation: str
) -> None:
    """Sigmoid unless the file says otherwise, by the key of version 3 or of version 4."""
    network = models.resolve(str(build(architectures=CLASSIFIER, id2label={"0": "LABEL_0"}, **config)))
    assert (network.task, network.activation, network.labels) == ("reranking", activation, ("LABEL_0",))


def test_a_crossencoder_saved_by_version_6(build: Build) -> None:
    """It has a modules.json of one module, and the activation in the library's own file."""
    own = {"activation_fn": "torch.nn.modules.linear.Identity", "model_type": "CrossEncoder", "prompts": {}}
    files = modules("Transformer") | {"config_sentence_transformers.json": own}
    network = models.resolve(str(build(files, architectures=CLASSIFIER, id2label={"0": "LABEL_0"})))
    assert (network.task, network.activation) == ("reranking", "identity")


def test_an_activation_of_the_models_own_code_is_refused(build: Build) -> None:
    """It would have to be run to be known."""
    config = {"sentence_transformers": {"activation_fn": "my_code.Sigmoid"}}
    assert "'my_code.Sigmoid' is unknown" in message(build(architectures=CLASSIFIER, num_labels=1, **config))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, ("cls", "mean")),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, ("lasttoken",)),
        ({"pooling_mode_weightedmean_tokens": True, "include_prompt": True}, ("weightedmean",)),
        ({"embedding_dimension": 8, "pooling_mode": "max", "include_prompt": True}, ("max",)),
        ({"embedding_dimension": 8, "pooling_mode": ["mean", "cls"]}, ("mean", "cls")),
    ],
)
def test_pooling_in_both_forms(build: Build, config: dict[str, Any], pooling: tuple[str, ...]) -> None:
    """Booleans have the library's order of concatenation, names the order in which they stand."""
    files = modules("Transformer", "Pooling", "Normalize") | {"1_Pooling/config.json": config}
    network = models.resolve(str(build(files)))
    assert (network.pooling, network.normalize) == (pooling, True)


def test_modules_that_are_not_computed_are_named(build: Build) -> None:
    """A SPLADE model, another order, prompts left out of the pooling, and an escape from the folder."""
    assert "SpladePooling" in message(build(modules("Transformer", "SpladePooling")))
    files = modules("Transformer", "Normalize", "Pooling") | {"2_Pooling/config.json": {}}
    assert "in this order" in message(build(files))
    files = modules("Transformer", "Pooling") | {"1_Pooling/config.json": {"include_prompt": False}}
    assert "include_prompt" in message(build(files))
    outside = {"modules.json": [{"type": "x.Transformer", "path": "../elsewhere"}]}
    assert "no folder in the model's directory" in message(build(outside))


def dense_files(**config: Any) -> dict[str, Any]:
    """Return the files of a model with a dense layer from 8 to 4."""
    own = {"in_features": 8, "out_features": 4, "activation_function": "torch.nn.modules.activation.Tanh"}
    folder = {"1_Pooling/config.json": {"pooling_mode": "mean"}, "2_Dense/config.json": own | config}
    return modules("Transformer", "Pooling", "Dense") | folder


def test_a_dense_layer_is_read_from_safetensors(build: Build) -> None:
    """With its activation and bias; a pickle of it is refused, and so is a width that does not fit."""
    directory = build(dense_files())
    pickled = directory / "2_Dense" / "pytorch_model.bin"
    pickled.write_bytes(b"")
    assert "pickles are not loaded" in message(directory)
    weights = {"linear.weight": np.zeros((4, 8), np.float32), "linear.bias": np.zeros(4, np.float32)}
    save_file(weights, directory / "2_Dense" / "model.safetensors")
    (dense,) = models.resolve(str(directory)).dense
    assert (dense.activation, dense.bias) == ("tanh", True)
    assert "takes 8 values, but gets 16" in message(directory, pooling=("mean", "cls"))
    assert "save the model again" in message(build(dense_files(out_features=5)))
    assert "residual" in message(build(dense_files(use_residual=True)))


def test_a_dense_layer_can_be_left_out_or_insisted_on(build: Build) -> None:
    """Left out, it is not even read, so that a pickled one is no obstacle; the embedding has the network's width."""
    directory = build(dense_files())
    assert "has no model.safetensors" in message(directory)
    network = models.resolve(str(directory), overrides=models.Overrides(dense=False, pooling=("mean", "cls")))
    assert (network.dense, network.pooling) == ((), ("mean", "cls"))
    weights = {"linear.weight": np.zeros((4, 8), np.float32), "linear.bias": np.zeros(4, np.float32)}
    save_file(weights, directory / "2_Dense" / "model.safetensors")
    assert len(models.resolve(str(directory), overrides=models.Overrides(dense=True)).dense) == 1
    (directory / "modules.json").unlink()
    assert "dense layers were asked for" in message(directory, dense=True)
    assert models.resolve(str(directory), overrides=models.Overrides(dense=False)).dense == ()
    assert "dense False was asked for, but means nothing" in message(
        build(architectures=CLASSIFIER, **THREE), dense=False
    )


def test_the_shortest_length_limit_holds(build: Build) -> None:
    """Tokenizer, sentence-transformers and position table each have one; 1e30 stands for none."""
    none = {"tokenizer_config.json": '{"model_max_length": 1000000000000000019884624838656}'}
    assert models.resolve(str(build(none))).max_tokens == 32
    assert models.resolve(str(build({"tokenizer_config.json": '{"model_max_length": 1e30}'}))).max_tokens == 32
    tokenizer = {"tokenizer_config.json": {"model_max_length": 20}}
    assert models.resolve(str(build(tokenizer))).max_tokens == 20
    both = tokenizer | {"sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": True}}
    network = models.resolve(str(build(both)))
    assert (network.max_tokens, network.lowercase) == (12, True)


def test_max_tokens_can_be_raised_to_the_position_limit_and_no_further(build: Build) -> None:
    """Authors set low limits; beyond the position table there is nothing to compute with."""
    directory = build({"tokenizer_config.json": {"model_max_length": 20}})
    assert models.resolve(str(directory), overrides=models.Overrides(max_tokens=32)).max_tokens == 32
    assert "1 to 32" in message(directory, max_tokens=33)
    assert "1 to 32" in message(directory, max_tokens=0)


def test_prompts_and_similarity(build: Build) -> None:
    """From the library's file; overrides replace them, and a default that is none of them is refused."""
    own = {
        "prompts": {"query": "query: ", "document": None},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
    }
    directory = build({"config_sentence_transformers.json": own})
    network = models.resolve(str(directory))
    assert network.prompts == {"query": "query: ", "document": ""}
    assert (network.default_prompt, network.similarity) == ("query", "dot")
    off = models.resolve(str(directory), overrides=models.Overrides(default_prompt=""))
    assert off.default_prompt is None
    assert "'passage' is none of the model's prompts (document, query)" in message(directory, default_prompt="passage")
    replaced = models.resolve(str(directory), overrides=models.Overrides(prompts={"q": "Q "}, default_prompt="q"))
    assert (replaced.prompts, replaced.default_prompt) == ({"q": "Q "}, "q")


def test_overrides_that_make_no_sense(build: Build) -> None:
    """Each names the option or the task that does not fit."""
    classifier = build(architectures=CLASSIFIER, **THREE)
    assert "means nothing for classification" in message(classifier, pooling=("mean",))
    assert "means nothing for classification" in message(classifier, normalize=True)
    assert "possible tasks are classification, embedding" in message(classifier, task="reranking")
    assert "possible tasks are embedding" in message(build(), task="fill-mask")
    assert "means nothing for embedding" in message(build(), activation="sigmoid")
    assert "at least one mode" in message(build(), pooling=())


def test_overrides_replace_what_the_files_say(build: Build) -> None:
    """A classifier as an encoder with CLS vectors of unit length; raw scores of a reranker."""
    changed = models.Overrides(task="embedding", pooling=("cls",), normalize=True, lowercase=True)
    network = models.resolve(str(build(architectures=CLASSIFIER, **THREE)), overrides=changed)
    assert (network.task, network.pooling, network.normalize, network.lowercase) == ("embedding", ("cls",), True, True)
    assert (network.labels, network.activation) == ((), "identity")
    raw = models.Overrides(activation="identity")
    assert models.resolve(str(build(architectures=CLASSIFIER, num_labels=1)), overrides=raw).activation == "identity"


def test_the_mask_token_is_found_in_either_tokenizer_file(build: Build) -> None:
    """By its name in tokenizer_config.json or special_tokens_map.json; written plainly or with options."""
    vocabulary = {"vocab.txt": "[PAD]\n\u2028\n[MASK]\n"}
    plain = vocabulary | {"special_tokens_map.json": {"mask_token": "[MASK]"}}
    assert models.resolve(str(build(plain))).mask_token_id == 2
    whole = {"tokenizer.json": {"added_tokens": [{"id": 7, "content": "<mask>", "lstrip": True}], "model": {}}}
    options = whole | {"tokenizer_config.json": {"mask_token": {"content": "<mask>", "lstrip": True}}}
    assert models.resolve(str(build(options))).mask_token_id == 7


@pytest.mark.parametrize("name", ["onnx/model.onnx", "model.onnx", "openvino/openvino_model.xml"])
def test_an_exported_model_alone_is_enough(build: Build, name: str) -> None:
    """The engine that is chosen decides whether it can run it."""
    assert models.resolve(str(build({name: b"graph"}, tensors={}))).task == "embedding"


def test_exported_models_are_listed(build: Build) -> None:
    """Both places, sorted, weights and other files left out."""
    names = ["onnx/model.onnx", "onnx/model_O2.onnx", "model.onnx", "onnx/model.onnx_data", "openvino/m.xml", "o.xml"]
    directory = build({**dict.fromkeys([*names, "openvino/m.bin"], b"x"), "other/y.onnx": b"x"})
    assert models.artefact_candidates(directory, ".onnx") == ("model.onnx", "onnx/model.onnx", "onnx/model_O2.onnx")
    assert models.artefact_candidates(directory, ".xml") == ("o.xml", "openvino/m.xml")
