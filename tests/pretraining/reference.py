"""Both losses computed position by position, from the model's weights alone."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.pretraining.toys import tiny_model
from trainers.pretraining.model import Pretrained, Sequences
from trainers.pretraining.params import Enhanced, Weak


def rough_model(decoder: Weak | Enhanced | None) -> Pretrained:
    """A model in double precision, with weights so large that every one of them matters."""
    model = tiny_model(decoder).double()
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def token_loss(model: Pretrained, state: Tensor, token: Tensor, by_head: bool) -> Tensor:
    """Negative logarithm of the probability that a state ``(d,)`` assigns to a token."""
    table, head = model.encoder.get_input_embeddings().weight, model.head
    logits = table @ (head.norm(functional.gelu(head.dense(state))) if by_head else state)
    return -((logits + head.bias) if by_head else logits).log_softmax(dim=0)[token]


def encoder_loss(model: Pretrained, batch: Sequences) -> Tensor:
    total = torch.zeros((), dtype=torch.double)
    for tokens, read, chosen, present in zip(*batch, strict=True):
        states = model.encoder(read[present][None]).last_hidden_state[0]
        for place in chosen.nonzero().flatten():
            total = total + token_loss(model, states[place], tokens[place], by_head=True)
    return total


def first_state(model: Pretrained, batch: Sequences, row: int) -> Tensor:
    return model.encoder(batch.read[row][batch.present[row]][None]).last_hidden_state[0, 0]


def weak_loss(model: Pretrained, batch: Sequences, window: int) -> Tensor:
    """State t predicts token t + 1 from h0, token 0 and tokens t - window + 1 to t."""
    decoder, total = model.decoder, torch.zeros((), dtype=torch.double)
    for row in range(len(batch.tokens)):
        h0 = first_state(model, batch, row)
        tokens = batch.tokens[row][batch.present[row]]
        table = model.encoder.get_input_embeddings().weight
        states = [decoder.norm(table[token] + decoder.positions.weight[t]) for t, token in enumerate(tokens[:-1])]
        for layer in decoder.layers.layers:
            normed = [layer.norm1(state) for state in states]
            seen = [[u for u in range(t + 1) if u == 0 or t - u < window] for t in range(len(states))]
            heard = [attend(layer.self_attn, normed[t], [normed[u] for u in seen[t]]) for t in range(len(states))]
            states = [state + own for state, own in zip(states, heard, strict=True)]
            states = [state + attend(layer.multihead_attn, layer.norm2(state), [h0]) for state in states]
            states = [state + layer.linear2(functional.gelu(layer.linear1(layer.norm3(state)))) for state in states]
        for t, state in enumerate(states):
            total = total + token_loss(model, decoder.layers.norm(state), tokens[t + 1], by_head=False)
    return total


def enhanced_loss(model: Pretrained, batch: Sequences, hidden: Tensor) -> Tensor:
    """Position t is predicted from h0 and from what row t - 1 of ``hidden`` ``(n, l - 1, l)`` leaves visible."""
    decoder, total = model.decoder, torch.zeros((), dtype=torch.double)
    for row in range(len(batch.tokens)):
        h0 = first_state(model, batch, row)
        table, places = model.encoder.get_input_embeddings().weight, decoder.positions.weight
        tokens = batch.tokens[row]
        memory = [decoder.norm((table[token] if t else h0) + places[t]) for t, token in enumerate(tokens)]
        for t in range(1, int(batch.present[row].sum())):
            query = h0 + places[t]
            seen = [memory[u] for u in range(len(tokens)) if not hidden[row, t - 1, u]]
            state = decoder.attention_norm(query + attend(decoder.attention, query, seen))
            state = decoder.output_norm(state + decoder.feed_forward(state))
            total = total + token_loss(model, state, tokens[t], by_head=True)
    return total


def attend(attention: nn.MultiheadAttention, query: Tensor, seen: list[Tensor]) -> Tensor:
    """Attention of one query ``(d,)`` over the vectors that it sees."""
    weights = torch.chunk(attention.in_proj_weight, 3)
    biases = torch.chunk(attention.in_proj_bias, 3)
    rows = torch.stack(seen)
    heads = []
    parts = (x @ w.T + b for x, w, b in zip((query[None], rows, rows), weights, biases, strict=True))
    queries, keys, values = (torch.chunk(part, attention.num_heads, dim=1) for part in parts)
    for q, k, v in zip(queries, keys, values, strict=True):
        heads.append((q @ k.T / q.shape[1] ** 0.5).softmax(dim=1) @ v)
    return attention.out_proj(torch.cat(heads, dim=1))[0]
