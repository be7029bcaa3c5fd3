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
from torch.nn import functional

from batchwright.retrievers.cde.attention import changed_attention, reading, remember
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder, Form
from batchwright.retrievers.cde.sequence import check_sequence, read_behind
from tests.cde.encoders import FORMS, KINDS, backbone, encoder, sentence_model
from tests.tiny_models import WIDTH

TEXTS = ["one", "one two three four five six seven eight nine ten one two", "two three"]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_form = pytest.mark.parametrize("form", FORMS)


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

    with changed_attention(model, lambda _: slow):
        expected = model(**inputs).last_hidden_state
    with reading(model, memory, made.gate):
        found = model(**inputs).last_hidden_state
    present = features["attention_mask"].bool()
    torch.testing.assert_close(found[present], expected[present], **CLOSE)


@each_kind
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_sequence_is_at_first_its_start_model_but_for_the_weight_of_its_context(kind: str, pooling: str) -> None:
    """A few percent of the attention by default; the lower the bias, the less."""
    start = sentence_model(kind, 0, pooling)
    expected = start.encode(TEXTS, convert_to_tensor=True)
    for documents in (0, 1, 16, 512):
        for bias, least in ((-2, 0.9), (-8, 0.99), (-16, 1 - 1e-6)):
            made = ContextualEncoder(start, start, documents=documents, form="sequence", bias=bias).eval()
            for count in {0, documents // 4, documents}:
                found = read(made, TEXTS, vectors(count) if documents else None)
                assert torch.cosine_similarity(found, expected).min() > least
            if not documents:
                torch.testing.assert_close(read(made, TEXTS, None), expected, atol=1e-5, rtol=0)


@each_kind
def test_a_sequence_is_the_context_and_the_text_whose_positions_do_not_depend_on_it(kind: str) -> None:
    """By definition, with masks, positions and biases as large as the whole sequence."""
    model, count = backbone(kind), 3
    rows, offset = vectors(count), torch.tensor([[-1.0, 0.5, 0.0], [2.0, -3.0, 0.3]])
    ids = torch.arange(12)[None] + 5
    texts = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    positions = torch.cat([torch.zeros(count, dtype=torch.int64), torch.arange(12) + 2 * (kind == "learned, offset")])
    given: dict[str, Any] = {"position_ids": positions[None]}
    before = rows - model.embeddings.position_embeddings.weight[0] if kind.startswith("learned") else rows
    whole = torch.zeros(1, 2, count + 12, count + 12)
    whole[..., :count] = offset[:, None]
    mask: Any = whole
    if kind == "rotary, windows":
        far = (positions[:, None] - positions).abs() > model.config.sliding_window
        far[:count] = far[:, :count] = False
        mask = {"full_attention": whole, "sliding_attention": whole.masked_fill(far, -1e9)}
    if kind == "relative":
        given = {}
        attention = model.encoder.block[0].layer[0].SelfAttention
        of_text = attention.compute_bias(12, 12)
        attention.compute_bias = lambda *_, **__: functional.pad(of_text, (count, 0, count, 0))
    embedded = torch.cat([before, model.get_input_embeddings()(ids)[0]])[None]
    expected = model(inputs_embeds=embedded, attention_mask=mask, **given).last_hidden_state[:, count:]
    if kind == "relative":
        del attention.compute_bias
    found = read_behind(model, texts, rows, offset.expand(3, -1, -1))
    torch.testing.assert_close(found, expected, **CLOSE)
    assert (found - model(**texts).last_hidden_state).abs().amax() > 1e-2


@each_kind
def test_null_vectors_stand_for_documents_that_are_missing_or_dropped(kind: str) -> None:
    for bias in (-1.0, None):
        made = encoder(kind, form="sequence", bias=bias)
        nulls = made.null.expand(5, -1)
        for count in (0, 2, 4):
            filled = torch.cat([vectors(count), nulls[count:]])
            some = read(made, TEXTS, vectors(count))
            torch.testing.assert_close(read(made, TEXTS, filled), some, **CLOSE)
            dropped = made.prepare(torch.cat([vectors(count), vectors(5 - count, 4)]), torch.arange(5) >= count)
            again = made({**made.preprocess(TEXTS), "context": dropped})["sentence_embedding"]
            torch.testing.assert_close(again, some, **CLOSE)
        torch.testing.assert_close(read(made, TEXTS, None), read(made, TEXTS, nulls), **CLOSE)


def test_a_backbone_that_tells_where_a_text_stands_is_refused() -> None:
    model = backbone("learned")
    forward = model.forward
    model.forward = lambda position_ids=None, **given: forward(**given)
    with pytest.raises(ValueError, match="BertModel reads a text otherwise when vectors stand before it"):
        check_sequence(model, 3, 2)
    model.config.output_hidden_states = True
    with pytest.raises(ValueError, match="its pooling reads all layers"):
        check_sequence(model, 3, 2)


@each_form
@each_kind
@given(order=st.permutations(range(5)))
@settings(max_examples=5, deadline=None)
def test_the_order_and_the_number_of_copies_do_not_matter(kind: str, form: Form, order: list[int]) -> None:
    """Context has no positions: else copies, which stand at other positions, would change what is read."""
    made, context = encoder(kind, form=form), vectors(5)
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


@each_form
@each_kind
def test_context_matters(kind: str, form: Form) -> None:
    made = encoder(kind, form=form)
    none, some, other = (read(made, TEXTS, context) for context in (None, vectors(2), vectors(2, 9)))
    assert (none - some).abs().amax() > 1e-2 < (some - other).abs().amax()


@each_form
@each_kind
def test_padding_changes_nothing(kind: str, form: Form) -> None:
    made = encoder(kind, form=form)
    together = read(made, TEXTS, vectors(5))
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(read(made, [text], vectors(5))[0], together[row], **CLOSE)


@each_form
def test_the_backbone_is_left_as_it_was(form: Form) -> None:
    made = encoder(form=form)
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


def test_a_sequence_pools_the_text_alone_and_not_its_prefix() -> None:
    made = encoder(form="sequence", unpooled_prefixes=["search_query: "])
    features = made.preprocess(["search_query: one two", "three"])
    rows = made.prepare(vectors(5))
    states = read_behind(made.backbone, features, rows, made._offset(5))
    expected = torch.stack([row[kept].mean(0) for row, kept in zip(states, features["pooled"].bool(), strict=True)])
    assert features["pooled"][0].tolist()[:3] == [0, 0, 1]
    torch.testing.assert_close(made({**features, "context": rows})["sentence_embedding"], expected, **CLOSE)


def test_a_backbone_that_cannot_read_context_is_refused() -> None:
    lacking = sentence_model()
    lacking[0].model.forward = lambda input_ids, attention_mask=None: None
    with pytest.raises(ValueError, match="BertModel takes no inputs_embeds"):
        ContextualEncoder(sentence_model(), lacking, documents=2)


def test_a_first_stage_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="first stage's vectors have 8 numbers, but the second stage reads 16"):
        ContextualEncoder(sentence_model(more=[Dense(WIDTH, 8)]), sentence_model(), documents=2)
