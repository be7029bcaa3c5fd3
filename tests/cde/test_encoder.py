"""What the second stage does with context, for every kind of position encoding."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor, nn

from batchwright.retrievers.cde.attention import _attention, reading, remember
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from tests.cde.encoders import KINDS, backbone, encoder, sentence_model
from tests.tiny_models import WIDTH

TEXTS = ["one", "one two three four five six seven eight nine ten one two", "two three"]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}
each_kind = pytest.mark.parametrize("kind", KINDS)


def vectors(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))


def read(made: ContextualEncoder, texts: list[str], context: Tensor | None) -> Tensor:
    prepared = None if context is None else made.prepare(context)
    found: Tensor = made({**made.preprocess(texts), "context": prepared})["sentence_embedding"]
    return found


@each_kind
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("shared", [False, True])
def test_at_first_it_is_its_start_model_whatever_the_context(kind: str, pooling: str, shared: bool) -> None:
    dense = Dense(WIDTH, WIDTH, activation_function=nn.Tanh())
    first, second = (sentence_model(kind, 0, pooling, [dense, Normalize()]) for _ in range(2))
    first = second if shared else first
    start = second.encode(TEXTS, convert_to_tensor=True)
    made = ContextualEncoder(first, second, documents=0).eval()
    for count in (1, 16, 64, 512):
        torch.testing.assert_close(read(made, TEXTS, vectors(count)), start, atol=1e-6, rtol=0)
    torch.testing.assert_close(read(made, TEXTS, None), start, atol=1e-6, rtol=0)
    outer = SentenceTransformer(modules=[made], device="cpu")
    for count in (0, 1, 16, 64, 512):
        made.fit_context(["one two", "three four", "five"], size=count)
        torch.testing.assert_close(outer.encode(TEXTS, convert_to_tensor=True), start, atol=1e-6, rtol=0)


@each_kind
def test_every_gate_gets_a_gradient_while_it_is_shut(kind: str) -> None:
    made = encoder(kind)
    made.gate.data.zero_()
    (read(made, TEXTS, vectors(5)) @ vectors(1, 9)[0]).sum().backward()
    assert made.gate.grad is not None and (made.gate.grad != 0).all()


@each_kind
def test_attention_is_two_softmaxes_by_definition(kind: str) -> None:
    made = encoder(kind)
    model, memory, features = made.backbone, made.prepare(vectors(5)), made.preprocess(TEXTS)
    inputs = {"input_ids": features["input_ids"], "attention_mask": features["attention_mask"]}
    layers = iter(zip(memory, made.gate, strict=True))

    def slow(
        module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: Any = None, **options: Any
    ) -> Any:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = query @ key.mT * scale
        if options.get("position_bias") is not None:
            scores = scores + options["position_bias"]
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e30) if mask.dtype == torch.bool else scores + mask
        (keys, values), gate = next(layers)
        context = (query @ keys.mT * scale).softmax(-1) @ values
        return (scores.softmax(-1) @ value + gate.tanh()[:, None, None] * context).transpose(1, 2), None

    with _attention(model, lambda _: slow):
        expected = model(**inputs).last_hidden_state
    with reading(model, memory, made.gate):
        found = model(**inputs).last_hidden_state
    present = features["attention_mask"].bool()
    torch.testing.assert_close(found[present], expected[present], **CLOSE)


@each_kind
@given(order=st.permutations(range(5)))
@settings(max_examples=5, deadline=None)
def test_the_order_and_the_number_of_copies_do_not_matter(kind: str, order: list[int]) -> None:
    """Context has no positions: else copies, which stand at other positions, would change what is read."""
    made, context = encoder(kind), vectors(5)
    expected = read(made, TEXTS, context)
    torch.testing.assert_close(read(made, TEXTS, context[order]), expected, **CLOSE)
    torch.testing.assert_close(read(made, TEXTS, context.repeat(3, 1)), expected, **CLOSE)


@pytest.mark.parametrize("kind", ["learned", "learned, offset"])
def test_context_has_no_learned_position(kind: str) -> None:
    model = backbone(kind)
    before = remember(model, vectors(5))
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.normal_()
    torch.testing.assert_close(remember(model, vectors(5)), before, **CLOSE)


@each_kind
def test_context_matters(kind: str) -> None:
    made = encoder(kind)
    none, some, other = (read(made, TEXTS, context) for context in (None, vectors(2), vectors(2, 9)))
    assert (none - some).abs().amax() > 1e-2 < (some - other).abs().amax()


@each_kind
def test_padding_changes_nothing(kind: str) -> None:
    made = encoder(kind)
    together = read(made, TEXTS, vectors(5))
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(read(made, [text], vectors(5))[0], together[row], **CLOSE)


def test_the_backbone_is_left_as_it_was() -> None:
    made = encoder()
    plain = made.second.encode(TEXTS, convert_to_tensor=True)
    assert (read(made, TEXTS, vectors(5)) - plain).abs().amax() > 1e-2
    assert torch.equal(made.second.encode(TEXTS, convert_to_tensor=True), plain)


def test_prefixes_can_stay_out_of_the_mean() -> None:
    made = encoder(unpooled_prefixes=["search_query: ", "search_document: "])
    texts = ["search_query: one two", "search_document: three", "four", "search_query: "]
    features = made.preprocess(texts)
    pooled = [
        made.tokenizer.convert_tokens_to_string(made.tokenizer.convert_ids_to_tokens(row[kept])).replace(" ##", "")
        for row, kept in zip(features["input_ids"], features["pooled"].bool(), strict=True)
    ]
    assert pooled[:3] == ["one two [SEP]", "three [SEP]", "[CLS] four [SEP]"]
    assert pooled[3], "a prefix alone is pooled rather than nothing"
    with torch.no_grad():
        states = made.second[0](dict(features))["token_embeddings"]
        expected = torch.stack([row[kept].mean(0) for row, kept in zip(states, features["pooled"].bool(), strict=True)])
        torch.testing.assert_close(read(made, texts, None), expected, **CLOSE)


def test_a_backbone_that_cannot_read_context_is_refused() -> None:
    lacking = sentence_model()
    lacking[0].model.forward = lambda input_ids, attention_mask=None: None
    with pytest.raises(ValueError, match="BertModel takes no inputs_embeds"):
        ContextualEncoder(sentence_model(), lacking, documents=2)


def test_a_first_stage_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="first stage's vectors have 8 numbers, but the second stage reads 16"):
        ContextualEncoder(sentence_model(more=[Dense(WIDTH, 8)]), sentence_model(), documents=2)
