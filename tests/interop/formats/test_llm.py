"""Counts of one small decoder are worked out by hand; published models have published counts."""

from dataclasses import replace

import pytest
from tiny_decoders import ATTENTION_BYTES, MLP_BYTES, decoder, vertex, with_experts

from optpart.base.errors import InputError
from optpart.interop.costs.drawn import unit
from optpart.interop.formats import llm_names, native
from optpart.interop.formats.llm import (
    EMBEDDING,
    HEAD,
    MLP,
    RUNTIME,
    TYPES,
    Layer,
    Step,
    Weight,
    chain,
    size,
)
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance


def test_a_block_is_one_vertex_or_two():
    whole = chain(decoder(), Step())
    parts = chain(decoder(), Step(granularity="attention+mlp"))
    assert whole.graph.names == ("embedding", "block.0", "block.1", "norm", "head")
    assert parts.graph.names[:3] == ("embedding", "block.0.attention", "block.0.mlp")
    assert whole.work.kinds == (
        "Gather", "TransformerBlock", "TransformerBlock", "RMSNormalization", "MatMul",
    )  # fmt: skip
    assert int(whole.work.flops.sum()) == int(parts.work.flops.sum())
    edges = zip(parts.graph.edge_source, parts.graph.edge_target, strict=True)
    assert [*edges] == [(v, v + 1) for v in range(6)]


def test_decoding_reads_all_weights_and_the_whole_cache():
    step = Step(batch=3, context=10, granularity="attention+mlp")
    found = chain(decoder(), step)
    states, cached = 3 * 8 * 2, (4 + 4) * 2
    scores = 3 * 2 * 10
    assert vertex(found, "block.0.attention") == (
        2 * 3 * 192 + scores * (2 * 8 + 6),
        ATTENTION_BYTES + states + 3 * 10 * cached,
        states + 3 * cached,
        ATTENTION_BYTES + 3 * 10 * cached,
        states,
    )
    flops = 2 * 3 * 512
    assert vertex(found, "block.0.mlp") == (flops, MLP_BYTES + states, states, MLP_BYTES, states)
    assert vertex(found, "embedding") == (0, 3 * 16, states, 16 * 16, states)
    assert vertex(found, "norm") == (4 * 3 * 8, 32 + states, states, 32, states)
    logits = 3 * 16 * 4
    assert vertex(found, "head") == (2 * 3 * 16 * 8, 256 + states, logits, 256, logits)


def test_prefilling_is_quadratic_in_the_tokens():
    step = Step(mode="prefill", tokens=6, context=10, granularity="attention+mlp")
    found = chain(decoder(), step)
    flops, read, written, memory, output = vertex(found, "block.0.attention")
    assert flops == 2 * 6 * 192 + 2 * (1 + 2 + 3 + 4 + 5 + 6) * (2 * 8 + 6)
    assert read == ATTENTION_BYTES + 6 * 16 + 6 * 16
    assert written == 6 * 16 + 6 * 16
    assert memory == ATTENTION_BYTES + 10 * 16
    assert output == 6 * 16


def test_only_what_the_head_needs_leaves_the_last_block():
    last = chain(decoder(), Step(mode="prefill", tokens=6))
    every = chain(decoder(), Step(mode="prefill", tokens=6, logits="all"))
    for found, positions in (last, 1), (every, 6):
        assert vertex(found, "block.0")[4] == 6 * 16
        assert vertex(found, "block.1")[4] == positions * 16
        assert vertex(found, "norm")[0] == 4 * positions * 8
        assert vertex(found, "head")[2] == positions * 16 * 4


def test_more_tokens_than_rows_read_the_embedding_once():
    found = chain(decoder(), Step(mode="prefill", tokens=50))
    assert vertex(found, "embedding")[1] == 16 * 16


@pytest.mark.parametrize(("tokens", "past"), [(1, 0), (1, 9), (4, 0), (4, 3), (4, 9)])
@pytest.mark.parametrize("window", [1, 3, 6, 50])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_window_limits_pairs_and_cache(tokens, past, window, chunked):
    model = decoder(1, layers=(Layer(2, 1, 4, 4, window, chunked=chunked),))
    mode = "decode" if past else "prefill"
    context = tokens + past
    step = Step(mode=mode, tokens=tokens, context=context, granularity="attention+mlp")
    flops, read, _, memory, _ = vertex(chain(model, step), "block.0.attention")
    attended = [
        {
            position
            for position in range(at + 1)
            if (position // window == at // window if chunked else at - window < position)
        }
        for at in range(past, context)
    ]
    assert flops == 2 * tokens * 192 + 2 * sum(map(len, attended)) * (2 * 8 + 6)
    assert read == ATTENTION_BYTES + tokens * 16 + len(set.union(*attended)) * 16
    assert memory == ATTENTION_BYTES + min(window, context) * 16


def test_a_prompt_of_one_token_is_like_one_more_sequence():
    for granularity in ("block", "attention+mlp"):
        beside = chain(decoder(), Step(batch=2, prefill_tokens=1, granularity=granularity))
        more = chain(decoder(), Step(batch=3, granularity=granularity))
        for name in more.graph.names:
            assert vertex(beside, name) == vertex(more, name)
        assert (beside.cached, beside.reserve) == (more.cached, more.reserve)


def test_a_decoding_step_may_read_a_prompt_beside():
    # 2 sequences decode after 9 others; a third reads its last 4 tokens of 10.
    step = Step(batch=2, context=10, granularity="attention+mlp")
    alone, both = chain(decoder(), step), chain(decoder(), replace(step, prefill_tokens=4))
    cache, states = 2 * 4 * 2, 4 * 8 * 2

    def more(name):
        pairs = zip(vertex(both, name), vertex(alone, name), strict=True)
        return tuple(one - other for one, other in pairs)

    assert more("block.0.mlp") == (4 * 2 * 512, states, states, 0, states)
    scores = 2 * (7 + 8 + 9 + 10)
    flops = 4 * 2 * 192 + 2 * scores * 8 + 6 * scores
    written = states + 4 * cache
    assert more("block.0.attention") == (flops, states + 10 * cache, written, 10 * cache, states)
    assert vertex(both, "head")[0] * 2 == vertex(alone, "head")[0] * 3


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"prefill_tokens": 20, "context": 10}, "has room for 10"),
        ({"prefill_tokens": 2, "mode": "prefill"}, "only a decoding step"),
    ],
)
def test_a_prompt_beside_that_does_not_fit_is_refused(options, fault):
    with pytest.raises(InputError, match=f"prefill_tokens: .*{fault}"):
        chain(decoder(), Step(**options))


def test_a_token_uses_some_experts_and_all_are_held():
    model = with_experts(decoder(), experts=8, used=2)
    assert model.parameters - model.active_parameters == 2 * 6 * 512
    for batch, read in (1, 2), (3, 6), (5, 8):
        step = Step(batch=batch, granularity="attention+mlp")
        found = vertex(chain(model, step), "block.0.mlp")
        states = batch * 16
        assert found[0] == 2 * batch * 2 * 512
        assert found[1] == read * MLP_BYTES + states
        assert found[3] == 8 * MLP_BYTES


def test_the_cache_may_be_a_vertex_between_projections():
    step = Step(context=64, batch=2, tokens=3)
    halves = chain(decoder(), replace(step, granularity="attention+mlp"))
    apart = chain(decoder(), replace(step, granularity="attention+cache+mlp"))
    names = [f"block.0.{part}" for part in ("attention", "cache", "output", "mlp")]
    assert list(apart.graph.names[1:5]) == names
    whole = vertex(halves, names[0])
    projections, cache, output = (vertex(apart, name) for name in names[:3])
    # Six tokens hand on 8 numbers of queries, 4 of keys and 4 of values, and get 8 numbers back.
    asks, finds, hidden = 6 * 16 * 2, 6 * 8 * 2, 6 * 8 * 2
    held = 2 * 64 * 8 * 2
    assert output == (0, 0, 0, 0, hidden)
    assert projections[0] == 2 * 6 * 192
    assert projections[1:4] == (ATTENTION_BYTES + hidden + finds, asks + hidden, ATTENTION_BYTES)
    assert cache == (whole[0] - projections[0], asks + held, finds + 6 * 8 * 2, held, finds)
    assert whole[3] == ATTENTION_BYTES + held
    assert vertex(apart, names[3]) == vertex(halves, names[3])
    graph = apart.graph
    joined = {(graph.names[u], graph.names[v], int(graph.tensor_size[t]))
              for u, v, t in graph.edges() if "block.0." in graph.names[v]}  # fmt: skip
    assert joined == {("embedding", names[0], hidden), (names[0], names[1], asks),
                      (names[0], names[2], hidden), (names[1], names[2], finds),
                      (names[2], names[3], hidden)}  # fmt: skip
    together = [sorted(graph.names[v] for v in group) for group in graph.colocation]
    assert together == [[f"block.{n}.attention", f"block.{n}.output"] for n in (0, 1)]
    assert sum(apart.cached) == sum(halves.cached) == 2 * held


def test_the_cache_of_a_named_model_is_apart():
    # 61 blocks keep 512 + 64 numbers of a position; 128 heads ask with as many, and get 512 each.
    step = Step(granularity="attention+cache+mlp+experts", context=1024)
    found = llm_names.read("deepseek-v3", step)
    graph = found.graph
    assert len(graph) == 3 + 3 * 4 + 58 * 5
    assert sum(found.cached) == 61 * 1024 * 576 * 2
    assert {*vertex(found, "block.9.cache")[3:]} == {1024 * 576 * 2, 128 * 512 * 2}
    assert vertex(found, "block.9.attention")[4] == (128 * 576 + 576) * 2
    whole = llm_names.read("deepseek-v3", replace(step, granularity="attention+mlp+experts"))
    assert sum(graph.memory.fractions()) == sum(whole.graph.memory.fractions())
    assert sum(found.work.flops.tolist()) == sum(whole.work.flops.tolist())


def test_experts_may_be_a_vertex_behind_their_router():
    router = tuple(Weight(MLP, number, (8, 8), "float32") for number in range(2))
    model = with_experts(decoder(), experts=8, used=2)
    model = replace(model, weights=(*model.weights, *router))
    step = Step(batch=3, granularity="attention+mlp+experts")
    found, halves = chain(model, step), chain(model, replace(step, granularity="attention+mlp"))
    assert found.graph.names[1:5] == (
        "block.0.attention", "block.0.mlp", "block.0.experts", "block.1.attention",
    )  # fmt: skip
    edges = zip(found.graph.edge_source, found.graph.edge_target, strict=True)
    assert [*edges] == [(v, v + 1) for v in range(8)]
    # Numbers and weights of two experts for each of three tokens go with the hidden states.
    states, chosen = 3 * 16, 3 * 2 * 8
    assert vertex(found, "block.0.mlp") == (
        2 * 3 * 64, 256 + states, states + chosen, 256, states + chosen,
    )  # fmt: skip
    whole = vertex(halves, "block.0.mlp")
    assert vertex(found, "block.0.experts") == (
        whole[0] - 2 * 3 * 64, whole[1] - 256 + chosen, states, whole[3] - 256, states,
    )  # fmt: skip


def test_experts_are_apart_by_default_where_the_runtime_can_place_them_so():
    mixture = with_experts(decoder(), experts=8, used=2)
    for model, names in (
        (mixture, ["block.0"]),
        (replace(decoder(), apart=True), ["block.0"]),
        (replace(mixture, apart=True), ["block.0.attention", "block.0.mlp", "block.0.experts"]),
    ):
        found = chain(model, Step())
        assert [*found.graph.names[1 : 1 + len(names)]] == names
        assert any("--granularity block" in said for said in found.assumed) == (len(names) > 1)
    whole = chain(replace(mixture, apart=True), Step(granularity="block"))
    assert whole.graph.names[1] == "block.0"
    with pytest.raises(InputError, match="granularity: the model has no experts; give block or"):
        chain(decoder(), Step(granularity="attention+mlp+experts"))


def test_the_reserve_has_room_for_the_runtime_and_intermediate_results():
    def buffers(model, **step):
        return chain(model, Step(**step)).reserve - RUNTIME

    hidden, feed_forward, mask = 12 * 8, 3 * 32, 4 * 2 * 64
    assert buffers(decoder()) == 64 * (mask + 4 * (hidden + feed_forward))
    two = (Layer(2, 1, 4, 4, 5), Layer(2, 1, 4, 4))
    assert buffers(decoder(layers=two)) == buffers(decoder()) + 64 * mask
    attention = (Layer(20, 1, 4, 4),) * 2
    assert buffers(decoder(layers=attention)) == 64 * (mask + 4 * (hidden + (3 * 20 + 4) * 4))
    words = replace(decoder(), vocab=1000, weights=tuple(
        each._replace(shape=(1000, 8)) if each.place in (EMBEDDING, HEAD) else each
        for each in decoder().weights
    ))  # fmt: skip
    assert buffers(words) == 64 * (mask + 4 * (hidden + 1000))
    mixture = with_experts(decoder(), experts=8, used=2)
    assert buffers(mixture) == 64 * (mask + 4 * (hidden + 3 * 2 * 32 + 2 * 8))
    # No more than 512 tokens are computed at a time, and the mask is as long as all sequences.
    long = buffers(decoder(), batch=3, context=1000)
    assert long == 512 * (4 * 2 * 3000 + 4 * (hidden + feed_forward))


def test_another_reserve_can_be_given():
    assert chain(decoder(), Step(reserve="2 GiB")).reserve == 2**31
    assert chain(decoder(), Step(reserve=0)).reserve == 0
    with pytest.raises(InputError, match="reserve: "):
        Step(reserve="2 apples")


def tied(model):
    """Remove the matrix of the head."""
    return replace(model, weights=tuple(each for each in model.weights if each.place != HEAD))


def test_a_tied_head_holds_a_copy_or_shares_a_device():
    copied = chain(tied(decoder()), Step(tied="copy"))
    shared = chain(tied(decoder()), Step())
    assert shared.graph == chain(tied(decoder()), Step(tied="share")).graph
    assert chain(replace(tied(decoder()), copied=True), Step()).graph == copied.graph
    assert vertex(copied, "head") == vertex(chain(decoder(), Step()), "head")
    assert vertex(shared, "head")[:3] == vertex(copied, "head")[:3]
    assert vertex(shared, "head")[3] == 0
    assert copied.graph.colocation == ()
    assert shared.graph.colocation == ((0, 4),)
    assert any("holds a copy" in sentence for sentence in copied.assumed)


def test_types_count_in_whole_blocks():
    assert size("q4_K", (3, 512)) == 3 * 2 * 144
    assert size("q8_0", (33,)) == 2 * 34
    quantised = chain(decoder(), Step(kv_dtype="Q8_0", context=10))
    plain = chain(decoder(), Step(kv_dtype="f16", context=10))
    assert vertex(plain, "block.0")[3] - vertex(quantised, "block.0")[3] == 10 * 2 * (8 - 34)


def test_what_was_assumed_is_said():
    model = decoder(layers=(Layer(2, 1, 4, 4, 5), Layer(2, 1, 4, 4)), parallel=True)
    found = chain(model, Step(context=100, granularity="attention+mlp")).assumed
    assert [sentence.split(";")[0] for sentence in found] == [
        "One step computes 1 new token of 1 sequence after 99 others",
        "The model was trained for 64 positions only.",
        "1 of 2 blocks attend to a window of 5 positions, and hold these only.",
        "Attention and feed-forward of a block, which the model computes side by side, come one "
        "after the other.",
    ]


def test_without_a_context_it_is_no_longer_than_the_model_was_trained_for():
    assert "room for 64 positions" in chain(decoder(), Step()).assumed[0]
    assert "room for 4,096 positions" in chain(decoder(longest=9999), Step()).assumed[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"mode": "train"}, "mode: 'train'; give 'decode' or 'prefill'"),
        ({"tied": "yes"}, "tied: 'yes'; give 'copy' or 'share'"),
        ({"batch": 0}, "batch: 0; give a whole number of 1 to 1000000000"),
        ({"tokens": True}, "tokens: True; give a whole number of 1 to 1000000000"),
        ({"tokens": 9, "context": 8}, "tokens: 9, but the context has room for 8; "),
        ({"kv_dtype": "f12"}, "kv_dtype: no type 'f12'; choose one of float64"),
        ({"tied": "copy"}, "tied: the head has a matrix of its own; leave the option out"),
        ({"batch": 10**9, "context": 10**9}, "tiny, block.0: more than 2^63"),
    ],
)
def test_a_step_that_does_not_fit_is_refused(change, fault):
    with pytest.raises(InputError) as caught:
        chain(decoder(), Step(**change))
    assert str(caught.value).startswith(fault)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"layers": ()}, "tiny: 0 blocks; give 1 to"),
        ({"hidden": 9}, "tiny: has no embedding matrix of its vocabulary; give one of 16 by 9"),
        ({"layers": (Layer(2, 1, 4, 4),)}, "tiny: has weights of block 1, but 1 blocks; "),
        ({"layers": (Layer(2, 1, 4, 4),) * 3}, "tiny, block 2: has no attention matrix; "),
        ({"layers": (Layer(2, 0, 4, 4),) * 2}, "tiny, block 0: kv heads: 0; "),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_refused(change, fault):
    with pytest.raises(InputError) as caught:
        chain(decoder(**change), Step())
    assert str(caught.value).startswith(fault)


def test_experts_that_nobody_counts_are_refused():
    with pytest.raises(InputError, match="3 of 2 experts are used"):
        chain(with_experts(decoder(), experts=2, used=3), Step())


@pytest.mark.parametrize("name", llm_names.names())
def test_a_named_model_has_the_published_number_of_parameters(name):
    assert llm_names.transformer(name).parameters == llm_names.published(name)


def test_of_a_named_mixture_some_parameters_are_active():
    # A. Jiang et al.: Mixtral of Experts, arXiv 2401.04088: 47B, of which a token uses 13B.
    model = llm_names.transformer("mixtral-8x7b")
    assert round(model.parameters / 1e9) == 47
    assert round(model.active_parameters / 1e9) == 13


@pytest.mark.parametrize(
    ("name", "whole", "seeing"),
    [("llama-4-scout", 108641793536, 16), ("llama-4-maverick", 401583781376, 128)],
)
def test_llama_4_has_its_published_parameters_and_what_sees(name, whole, seeing):
    # The checkpoints' totals, less 34 blocks of 1408 with biases, the patches (588), a class and
    # 577 positions, two norms, and the projection 5632 - 4096 - 4096 - 5120.
    block = 4 * (1408 + 1) * 1408 + 2 * 1408 * 5632 + 5632 + 1408 + 4 * 1408
    tower = 34 * block + 588 * 1408 + 578 * 1408 + 4 * 1408
    model = llm_names.transformer(name)
    sees = llm_names.read(name, Step(mode="prefill", images=1))
    assert sees.graph.memory[0] == 2 * (whole - model.parameters)
    assert sees.graph.tensor_size[0] == 144 * 5120 * 2
    assert whole - tower - (5632 + 4096 + 5120) * 4096 == model.parameters
    assert round(model.active_parameters / 1e9) == 17
    assert (model.experts, model.experts_used) == (seeing, 1)
    mixtures = {each.layer for each in model.weights if each.experts}
    assert mixtures == set(range(48) if seeing == 16 else range(1, 48, 2))
    assert [n for n, layer in enumerate(model.layers) if layer.window is None] == [*range(3, 48, 4)]


def test_gemma_3_has_its_published_parameters_and_what_sees():
    # The checkpoint's total, 27,432,406,640; 256 tokens of an image.
    found = llm_names.read("gemma-3-27b", Step(mode="prefill", images=1))
    assert found.graph.memory[0] == 2 * (27432406640 - llm_names.published("gemma-3-27b"))
    assert found.graph.tensor_size[0] == 256 * 5376 * 2
    # Two operations per weight and patch, and those of 16 heads; 256 tokens are projected.
    inside = 588 * 1152 + 27 * (4 * 1152**2 + 2 * 1152 * 4304)
    scores = 27 * 4096**2 * (4 * 1152 + 6 * 16)
    assert found.work.flops[0] == 2 * 4096 * inside + scores + 2 * 256 * 1152 * 5376
    held = llm_names.read("gemma-3-27b", Step(images=0))
    assert (held.work.flops[0], held.graph.memory[0]) == (0, found.graph.memory[0])
    without = llm_names.read("gemma-3-27b")
    assert without.graph.names[0] == "embedding"
    assert (
        "Left out: 423,060,336 parameters of the vision tower; --images N, also 0, holds them."
        in (without.assumed)
    )


def test_three_of_four_blocks_of_llama_4_hold_a_chunk():
    step = Step(context=10_000)
    found = llm_names.read("llama-4-scout", step)
    assert {*found.cached[1:49]} == {8192 * 2 * 1024 * 2, 10_000 * 2 * 1024 * 2}
    assert "36 of 48 blocks attend to chunks of 8,192 positions, and hold one only." in (
        found.assumed
    )


def test_a_cache_has_its_published_size():
    # H. Touvron et al., Llama 2: 80 blocks of 8 heads of 128 keys and values; 320 KiB a token.
    held = {
        context: sum(map(int, llm_names.read("llama-2-70b", Step(context=context)).graph.memory))
        for context in (1, 1001)
    }
    assert held[1001] - held[1] == 1000 * 320 * 1024


@pytest.mark.parametrize("name", llm_names.names())
def test_decoding_is_about_two_operations_per_active_parameter(name):
    model = llm_names.transformer(name)
    workload = llm_names.read(name, Step(context=1))
    words = model.vocab * model.hidden
    positions = sum(w.elements for w in model.weights if w.place == EMBEDDING) - words
    used = model.active_parameters - positions - (0 if model.tied else words)
    assert int(workload.work.flops.sum()) == pytest.approx(2 * used, rel=0.01)


@pytest.mark.parametrize("name", llm_names.names())
def test_decoding_is_bound_by_bytes_and_prefilling_by_operations(name):
    # Accelerators compute 100 to 300 operations in the time of reading a byte.
    def intensity(step):
        work = llm_names.read(name, step).work
        return work.flops.sum() / (work.read.sum() + work.written.sum())

    model = llm_names.transformer(name)
    share = model.experts // model.experts_used if model.experts else 1  # of the tokens, an expert
    prompt = 1024 * share
    assert intensity(Step(context=1024)) < 3
    assert intensity(Step(mode="prefill", context=prompt, granularity="attention+mlp")) > 150


def test_one_can_choose_the_type_of_a_named_model():
    workload = llm_names.read("llama-2-7b", Step(context=1), weights="Q4_0")
    assert set(workload.work.precisions) == {"q4_0", "float16"}
    held = sum(map(int, workload.graph.memory))
    matrices = 6738415616 - 65 * 4096
    assert held == matrices // 32 * 18 + 65 * 4096 * 4 + 32 * 2 * 4096 * 2


@pytest.mark.parametrize(
    ("name", "weights", "fault"),
    [("gpt-9", None, "no model 'gpt-9'; "), ("gpt2", "q9", "weights: no")],
)
def test_a_name_that_is_not_known_is_refused(name, weights, fault):
    with pytest.raises(InputError) as caught:
        llm_names.read(name, weights=weights)
    assert str(caught.value).startswith(fault)


@pytest.mark.parametrize("costs", [lambda graph: graph, unit])
def test_the_native_format_keeps_a_chain(tmp_path, costs):
    graph = llm_names.read("gpt2", Step(tied="share", granularity="attention+mlp")).graph
    instance = Instance(costs(graph), Cluster.uniform(2), name="gpt2")
    native.write(instance, tmp_path / "gpt2.json")
    assert native.dumps(native.read(tmp_path / "gpt2.json")) == native.dumps(instance)


def test_the_types_are_those_of_ggml():
    gguf = pytest.importorskip("gguf")
    sizes = {kind.name.lower(): found for kind, found in gguf.GGML_QUANT_SIZES.items()}
    quantised = {name: found for name, found in TYPES.items() if found[0] > 1}
    assert {name: sizes[name.lower()] for name in quantised} == quantised
