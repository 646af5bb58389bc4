"""Extract the dataflow graphs of three neural networks by running TensorFlow ([L] §6.1, table 7.2).

``python bench/extract_tensorflow.py FOLDER`` writes ``convolutional_network.pb``,
``recurrent_network.pb`` and ``dynamic_rnn.pb``, each a GraphDef with inference, loss, optimizer and
accuracy, and prints their size.

Needs TensorFlow >= 2.21: ``pip install 'optpart[extract]'``.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optpart.base.errors import InputError
from optpart.base.files import ANY, write_bytes


def load_tensorflow() -> Any:
    """Import TensorFlow and return its first-generation interface, ``tensorflow.compat.v1``."""
    # The LSTM cell left TensorFlow with Keras 3; it lives on in tf_keras, which TensorFlow hands
    # out only if this is set before it is imported.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow.compat.v1 as tf
        import tf_keras  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError(
            "", f"{error.name} is not installed", "pip install 'optpart[extract]'"
        ) from None
    tf.logging.set_verbosity(tf.logging.ERROR)
    # Reference variables and Switch/Merge: the graphs that TensorFlow 1 built.
    tf.disable_v2_behavior()
    return tf


def convolutional_network(tf: Any) -> None:
    """Two convolutions, a dense layer with dropout and an output layer, on 28 x 28 digits."""
    images = tf.placeholder(tf.float32, [None, 28 * 28])
    labels = tf.placeholder(tf.float32, [None, 10])
    keep_probability = tf.placeholder(tf.float32)
    weights = [
        normal_variable(tf, shape)
        for shape in ([5, 5, 1, 32], [5, 5, 32, 64], [7 * 7 * 64, 1024], [1024, 10])
    ]
    biases = [normal_variable(tf, [size]) for size in (32, 64, 1024, 10)]

    layer = tf.reshape(images, [-1, 28, 28, 1])
    for kernel, bias in zip(weights[:2], biases[:2], strict=True):
        layer = pooled_convolution(tf, layer, kernel, bias)
    layer = tf.reshape(layer, [-1, 7 * 7 * 64])
    layer = tf.nn.relu(tf.add(tf.matmul(layer, weights[2]), biases[2]))
    layer = tf.nn.dropout(layer, rate=1 - keep_probability)
    logits = tf.add(tf.matmul(layer, weights[3]), biases[3])
    add_training(tf, logits, labels, tf.train.AdamOptimizer(learning_rate=0.001))


def recurrent_network(tf: Any) -> None:
    """One LSTM layer of 128 units that reads the 28 rows of a digit."""
    rows = tf.placeholder(tf.float32, [None, 28, 28])
    labels = tf.placeholder(tf.float32, [None, 10])
    weight = normal_variable(tf, [128, 10])
    bias = normal_variable(tf, [10])

    outputs = unrolled_lstm(tf, rows, units=128)
    logits = tf.matmul(outputs[-1], weight) + bias
    add_training(tf, logits, labels, tf.train.AdamOptimizer(learning_rate=0.001))


def dynamic_rnn(tf: Any) -> None:
    """One LSTM layer of 64 units that reads up to 20 numbers and stops at each sequence's end."""
    steps, units = 20, 64
    sequences = tf.placeholder(tf.float32, [None, steps, 1])
    labels = tf.placeholder(tf.float32, [None, 2])
    lengths = tf.placeholder(tf.int32, [None])
    weight = normal_variable(tf, [units, 2])
    bias = normal_variable(tf, [2])

    outputs = unrolled_lstm(tf, sequences, units, lengths)
    by_sequence = tf.transpose(tf.stack(outputs), [1, 0, 2])
    last = tf.range(0, tf.shape(by_sequence)[0]) * steps + (lengths - 1)
    logits = tf.matmul(tf.gather(tf.reshape(by_sequence, [-1, units]), last), weight) + bias
    add_training(tf, logits, labels, tf.train.GradientDescentOptimizer(learning_rate=0.01))


NETWORKS: tuple[Callable[[Any], None], ...] = (
    convolutional_network,
    recurrent_network,
    dynamic_rnn,
)


def normal_variable(tf: Any, shape: list[int]) -> Any:
    """A trainable variable that starts normally distributed."""
    return tf.Variable(tf.random_normal(shape))


def pooled_convolution(tf: Any, layer: Any, kernel: Any, bias: Any) -> Any:
    """Convolve, rectify, and keep the maximum of every 2 x 2 pixels."""
    convolved = tf.nn.conv2d(layer, kernel, strides=[1, 1, 1, 1], padding="SAME")
    rectified = tf.nn.relu(tf.nn.bias_add(convolved, bias))
    return tf.nn.max_pool(rectified, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def unrolled_lstm(tf: Any, sequences: Any, units: int, lengths: Any = None) -> list[Any]:
    """Run an LSTM cell over sequences (batch, steps, features), one copy of it per step.

    Returns
    -------
    list of tensor
        The cell's output (batch, units) at every step.
    """
    import tf_keras

    _, steps, features = sequences.shape.as_list()
    inputs = tf.split(tf.reshape(tf.transpose(sequences, [1, 0, 2]), [-1, features]), steps, 0)
    # The initializer that the cell would choose, but seeded: the same file at every run.
    tf.get_variable_scope().set_initializer(tf_keras.initializers.GlorotUniform(seed=0))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*BasicLSTMCell.* is deprecated")
        cell = tf.nn.rnn_cell.BasicLSTMCell(units, forget_bias=1.0)
    outputs, _ = tf.nn.static_rnn(cell, inputs, dtype=tf.float32, sequence_length=lengths)
    return list(outputs)


def add_training(tf: Any, logits: Any, labels: Any, optimizer: Any) -> None:
    """Add loss, one optimizer step, accuracy and the initialization of all variables."""
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels))
    optimizer.minimize(loss)
    correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
    tf.reduce_mean(tf.cast(correct, tf.float32))
    tf.global_variables_initializer()


def graph_def(tf: Any, network: Callable[[Any], None]) -> Any:
    """Build a network in a graph of its own."""
    with tf.Graph().as_default() as graph:
        network(tf)
    return graph.as_graph_def()


def main() -> int:
    """Exit with 0 when done, 2 on bad input."""
    parser = argparse.ArgumentParser(description="extract three networks as TensorFlow builds them")
    parser.add_argument("folder", type=Path, help="existing folder to write the .pb files into")
    folder = parser.parse_args().folder
    try:
        tf = load_tensorflow()
        for network in NETWORKS:
            definition = graph_def(tf, network)
            content = definition.SerializeToString(deterministic=True)
            write_bytes(folder / f"{network.__name__}.pb", content, ANY)
            print(f"{network.__name__}: {len(definition.node)} vertices")
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
