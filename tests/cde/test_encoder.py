"""What the second stage does with context, for every kind of position encoding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import DistilBertConfig, DistilBertModel

from batchwright.retrievers.cde.backbones import _run, check_backbone, hidden_states
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from tests.cde.encoders import KINDS, backbone, encoder
from tests.tiny_models import WIDTH, word_pieces

TEXTS = ["one", "one two three four five six seven eight nine ten one two", "two three"]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}
each_kind = pytest.mark.parametrize("kind", KINDS)


def vectors(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))


@each_kind
@pytest.mark.parametrize("context", [0, 1, 7])
def test_positions_of_the_text_do_not_depend_on_the_context(kind: str, context: int) -> None:
    """Context that is masked as padding leaves the backbone's states unchanged."""
    model, made = backbone(kind), encoder(kind)
    features = made.preprocess(TEXTS)
    ids, present = features["input_ids"], features["attention_mask"]
    alone = model(input_ids=ids, attention_mask=present.long()).last_hidden_state
    rows = torch.cat([vectors(context).expand(len(ids), -1, -1), model.get_input_embeddings()(ids)], dim=1)
    unseen = torch.cat([present.new_zeros(len(ids), context), present], dim=1)
    together = hidden_states(model, rows, unseen, context)[:, context:]
    torch.testing.assert_close(together[present], alone[present], **CLOSE)


each_variant = pytest.mark.parametrize("reads_text", [True, False])


def read(made: ContextualEncoder, texts: list[str], context: Tensor | None) -> Tensor:
    return made.read(made.preprocess(texts), made.prepare(context))


@each_kind
@each_variant
@given(order=st.permutations(range(5)))
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_context_does_not_matter(kind: str, reads_text: bool, order: list[int]) -> None:
    made, context = encoder(kind, context_reads_text=reads_text), vectors(5)
    torch.testing.assert_close(read(made, TEXTS, context[order]), read(made, TEXTS, context), **CLOSE)


@each_kind
@each_variant
def test_context_matters_and_nulls_replace_missing_vectors(kind: str, reads_text: bool) -> None:
    made = encoder(kind, context_reads_text=reads_text)
    none, some, other = (read(made, TEXTS, context) for context in (None, vectors(2), vectors(2, 9)))
    assert (none - some).abs().amax() > 1e-2 < (some - other).abs().amax()
    filled = torch.cat([vectors(2), made.null.expand(3, -1)])
    torch.testing.assert_close(read(made, TEXTS, filled), some, **CLOSE)
    features = made.preprocess(TEXTS)
    for missing, expected in ((torch.ones(5, dtype=torch.bool), none), (torch.arange(5) >= 2, some)):
        dropped = made.prepare(torch.cat([vectors(2), vectors(3, 4)]), missing)
        torch.testing.assert_close(made.read(features, dropped), expected, **CLOSE)


@each_kind
def test_context_that_does_not_read_the_text_equals_masked_attention(kind: str) -> None:
    """By definition: one sequence in which context rows attend only to context rows."""
    made = encoder(kind, context_reads_text=False)
    for text in TEXTS:
        tokens = made.second.get_input_embeddings()(made.preprocess([text])["input_ids"])
        rows = torch.cat([vectors(5)[None], tokens], dim=1)
        size = rows.shape[1]
        blocked = torch.zeros(1, 1, size, size)
        blocked[:, :, :5, 5:] = torch.finfo(torch.float32).min
        positions = torch.cat([torch.zeros(5, dtype=torch.int64), torch.arange(size - 5)])
        masks = {"full_attention": blocked, "sliding_attention": blocked.clone()}
        if kind == "rotary, windows":
            far = (positions[:, None] - positions).abs() > made.second.config.sliding_window
            far[:5] = far[:, :5] = False
            masks["sliding_attention"].masked_fill_(far, torch.finfo(torch.float32).min)
        states = _run(made.second, rows, masks if kind == "rotary, windows" else blocked, positions, 0)
        torch.testing.assert_close(read(made, [text], vectors(5))[0], states[0, 5:].mean(dim=0), **CLOSE)


@each_kind
@each_variant
def test_padding_changes_nothing(kind: str, reads_text: bool) -> None:
    made = encoder(kind, context_reads_text=reads_text)
    together = read(made, TEXTS, vectors(5))
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(read(made, [text], vectors(5))[0], together[row], **CLOSE)


@each_kind
def test_only_text_is_pooled(kind: str) -> None:
    made = encoder(kind)
    features = made.preprocess(TEXTS[:1])
    rows = torch.cat([vectors(5)[None], made.second.get_input_embeddings()(features["input_ids"])], dim=1)
    states = hidden_states(made.second, rows, torch.ones(rows.shape[:2], dtype=torch.bool), 5)
    torch.testing.assert_close(read(made, TEXTS[:1], vectors(5))[0], states[0, 5:].mean(dim=0), **CLOSE)


def test_a_model_without_context_documents_is_a_biencoder() -> None:
    made = encoder(documents=0)
    features = made.preprocess(TEXTS)
    present = features["attention_mask"]
    states = made.second(input_ids=features["input_ids"], attention_mask=present.long()).last_hidden_state
    expected = torch.stack([row[kept].mean(dim=0) for row, kept in zip(states, present, strict=True)])
    torch.testing.assert_close(read(made, TEXTS, None), expected, **CLOSE)
    made.fit_context(["one"])
    torch.testing.assert_close(made(features)["sentence_embedding"], expected, **CLOSE)


def test_prefixes_can_stay_out_of_the_mean() -> None:
    made = encoder(unpooled_prefixes=["search_query: ", "search_document: "])
    features = made.preprocess(["search_query: one two", "search_document: three", "four", "search_query: "])
    pooled = [
        made.tokenizer.convert_tokens_to_string(made.tokenizer.convert_ids_to_tokens(row[kept])).replace(" ##", "")
        for row, kept in zip(features["input_ids"], features["pooled"], strict=True)
    ]
    assert pooled[:3] == ["one two [SEP]", "three [SEP]", "[CLS] four [SEP]"]
    assert pooled[3], "a prefix alone is pooled rather than nothing"
    assert features["attention_mask"].sum() > features["pooled"].sum()


@pytest.mark.parametrize("wrong", [vectors(2)[:, :-1], vectors(6), vectors(5)[0]])
def test_context_of_the_wrong_shape_is_refused(wrong: Tensor) -> None:
    made = encoder()
    with pytest.raises(ValueError, match=rf"at most 5 vectors of width {WIDTH}"):
        made.prepare(wrong)


def test_a_backbone_that_takes_no_positions_is_refused() -> None:
    lacking = DistilBertModel(DistilBertConfig(vocab_size=20, dim=16, n_layers=1, n_heads=2, hidden_dim=16))
    lacking.forward = lambda input_ids, attention_mask=None: None  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="DistilBertModel takes no inputs_embeds and no position_ids"):
        check_backbone(lacking)


def test_stages_of_different_widths_are_refused() -> None:
    other = backbone("learned")
    other.config.hidden_size = 8
    with pytest.raises(ValueError, match="widths differ: 8 and 16"):
        ContextualEncoder(other, backbone("learned"), word_pieces(), documents=2, max_seq_length=8)
