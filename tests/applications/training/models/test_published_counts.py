"""Parameters and multiply-adds are those that publications state, and those of closed forms.

Sources, by model:

- VGG19, Inception v3, MobileNet v2: ``torchvision`` weights (``num_params``, ``_ops`` in GMACs).
  Inception's 27,161,264 parameters include the auxiliary classifier: 768 → 128 (1 × 1), 128 → 768
  (5 × 5), both normalised, and 768 → 1000.
- ResNet-200: ``timm``, 64.67 M parameters and 15.07 GMACs at 224 × 224.
- NASNet-A (6 @ 4032): Zoph and others, table 2: 88.9 M and 23.8 G multiply-adds; ``timm``
  nasnetalarge: 88,753,150, without the auxiliary classifier, and 23.89 GMACs at 331 × 331.
- NASNet-A (4 @ 1056): Zoph and others, table 3: 5.3 M and 564 M multiply-adds; Keras NASNetMobile:
  5,289,978 trained parameters.
- Transformer: So and others, The evolved Transformer, 2019, table 2: 61.1 M for this vocabulary.
  (Vaswani and others round to 65 M with another vocabulary.) No multiply-adds are published.
- BERT-large: Clark and others, ELECTRA, 2020: 335 M; Desislavov and others, Compute and energy
  consumption trends in deep learning inference, 2021: 79 GFLOPs at 128 tokens.
- XLNet-large: ELECTRA: 360 M; Li and others, Comparing BERT and XLNet from the perspective of
  computational characteristics, 2020: 1.2 times the operations of BERT.
"""

import pytest

from optpart.applications.training.models import MODELS, network
from optpart.base.errors import InputError

#: Parameters, and multiply-adds in 10⁹ (None: not published).
PUBLISHED = {
    "vgg19": (143_667_240, 19.632),
    "resnet200": (64.67e6, 15.07),
    "inception_v3": (27_161_264 - 3_326_696, 5.713),
    "mobilenet_v2": (3_504_872, 0.301),
    "nasnet": (88_753_150, 23.89),
    "nasnet_mobile": (5_289_978, 0.564),
    "transformer": (61.1e6, None),
    "bert_large": (335e6, 79 / 2),
    "xlnet_large": (360e6, None),
}


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_within_one_per_cent_of_those_published(name: str) -> None:
    net = network(name)
    parameters, multiply_adds = PUBLISHED[name]
    assert net.parameters == pytest.approx(parameters, rel=0.01)
    if multiply_adds is not None:
        assert net.multiply_adds / 1e9 == pytest.approx(multiply_adds, rel=0.01)


@pytest.mark.parametrize(
    "name", ["vgg19", "inception_v3", "mobilenet_v2", "nasnet", "nasnet_mobile"]
)
def test_parameters_are_exactly_those_published(name: str) -> None:
    assert network(name).parameters == PUBLISHED[name][0]


@pytest.mark.parametrize(
    ("name", "counted"), [("vgg19", 19.632), ("inception_v3", 5.713), ("mobilenet_v2", 0.301)]
)
def test_multiply_adds_agree_to_the_last_published_digit(name: str, counted: float) -> None:
    assert round(network(name).multiply_adds / 1e9, 3) == counted


def test_multiply_adds_of_vgg19_in_closed_form() -> None:
    """A convolution of 3 × 3 on n × n images: 9 · n² · in · out."""
    blocks = [(224, 3, 64, 2), (112, 64, 128, 2), (56, 128, 256, 4), (28, 256, 512, 4)]
    blocks.append((14, 512, 512, 4))
    products = sum(9 * n**2 * (i * o + (k - 1) * o * o) for n, i, o, k in blocks)
    products += 49 * 512 * 4096 + 4096**2 + 4096 * 1000
    assert network("vgg19").multiply_adds == products


def test_resnet200_in_closed_form() -> None:
    """A bottleneck of width w after c channels: c·w + 9·w² + 4·w² weights, and normalisations."""
    weights, products, into = 3 * 64 * 49 + 128, 3 * 64 * 49 * 112**2, 64
    for stage, (count, w) in enumerate(((3, 64), (24, 128), (36, 256), (3, 512))):
        n = 56 >> stage
        for block in range(count):
            # The first convolution of a block works on what comes in, before the stride.
            before = 2 * n if stage and not block else n
            shortcut = into * 4 * w * (not block)
            weights += into * w + 13 * w * w + shortcut + 2 * 6 * w + 8 * w * (not block)
            products += into * w * before**2 + (13 * w * w + shortcut) * n**2
            into = 4 * w
    net = network("resnet200")
    assert net.parameters == weights + 2048 * 1000 + 1000 == 64_673_832
    assert net.multiply_adds == products + 2048 * 1000


def test_mobilenet_v2_in_closed_form() -> None:
    """By the rows of table 2: expansion, channels, repetitions, stride."""
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    rows += [(6, 160, 3, 2), (6, 320, 1, 1)]
    n, c, weights, products = 112, 32, 27 * 32 + 64, 27 * 32 * 112**2
    for t, out, repetitions, first in rows:
        for stride in [first] + [1] * (repetitions - 1):
            wide = t * c
            weights += (t > 1) * (c * wide + 2 * wide) + 9 * wide + 2 * wide + wide * out + 2 * out
            products += (t > 1) * c * wide * n**2
            n //= stride
            products += (9 * wide + wide * out) * n**2
            c = out
    net = network("mobilenet_v2")
    assert net.parameters == weights + 320 * 1280 + 2 * 1280 + 1280 * 1000 + 1000
    assert net.multiply_adds == products + 320 * 1280 * 49 + 1280 * 1000


def test_the_transformer_in_closed_form() -> None:
    """Attention has 4·d² weights, the feed-forward part 2·d·f, a normalisation 2·d."""
    d, f, words, n = 512, 2048, 33_708, 10
    feed = 2 * d * f + f + d + 2 * d
    encoder, decoder = 4 * d * d + 2 * d + feed, 8 * d * d + 4 * d + feed
    net = network("transformer")
    assert net.parameters == words * d + 6 * (encoder + decoder)
    products = n * (6 * (4 * d * d + 8 * d * d + 4 * d * f) + d * words) + 18 * 2 * n * n * d
    assert net.multiply_adds == products


def test_bert_large_in_closed_form() -> None:
    d, n = 1024, 128
    layer = 12 * d * d + 13 * d  # four biases of attention, 4·d and d of feed-forward, 4·d of norms
    net = network("bert_large")
    assert net.parameters == (30_522 + 512 + 2) * d + 2 * d + 24 * layer + 2 * d + 2
    assert net.multiply_adds == 24 * (12 * d * d * n + 2 * n * n * d) + 2 * d * n
    # The published 335,141,888 parameters have a pooler, of d² + d, instead of the head.
    assert net.parameters - (2 * d + 2) + d * d + d == 335_141_888


def test_xlnet_large_in_closed_form() -> None:
    d, n = 1024, 128
    # Queries, keys, values, output and positions; feed-forward; two norms; three biases, two
    # segments.
    layer = 5 * d * d + 8 * d * d + 5 * d + 4 * d + 5 * d
    net = network("xlnet_large")
    assert net.parameters == 32_000 * d + 24 * layer + 2 * d + 2
    # The published 360,268,800 parameters have an embedding of masks instead of the head.
    assert net.parameters - (2 * d + 2) + d == 360_268_800
    assert net.multiply_adds == 24 * (14 * d * d * n + 4 * n * n * d) + 2 * d * n
    assert net.multiply_adds / network("bert_large").multiply_adds == pytest.approx(1.2, abs=0.05)


def test_an_unknown_model_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="model: no model 'vgg16'; did you mean vgg19"):
        network("vgg16")
