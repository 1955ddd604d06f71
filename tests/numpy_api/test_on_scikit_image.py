"""scikit-image, which does not know TileJIT, on an image that it includes: the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.sizes import kernels_for_all_sizes

skimage: Any = pytest.importorskip("skimage", reason="scikit-image is not installed")


def operations() -> dict[str, Callable[[Any], Any]]:
    """Operations that call numpy.pad, concatenate, stack, take, copyto or ascontiguousarray."""
    from skimage import color, exposure, feature, filters, measure, restoration, transform, util

    return {
        "block_reduce": lambda image: measure.block_reduce(image, (3, 5, 1), np.max),
        "montage": lambda image: util.montage([image[..., k] for k in range(3)], padding_width=3),
        "hog": lambda image: feature.hog(image, channel_axis=-1),
        "equalize_adapthist": lambda image: exposure.equalize_adapthist(image),
        "rgb2lab": lambda image: color.rgb2lab(image),
        "denoise_tv": lambda image: restoration.denoise_tv_chambolle(image[:100], max_num_iter=3),
        "resize": lambda image: transform.resize(image, (100, 130), anti_aliasing=True),
        "pyramid": lambda image: list(transform.pyramid_gaussian(image, max_layer=2, channel_axis=-1))[-1],
        "gaussian": lambda image: filters.gaussian(image.transpose(1, 0, 2), 2, channel_axis=-1),
        "view_as_windows": lambda image: np.ascontiguousarray(util.view_as_windows(image[..., 0], (8, 8), 8)),
        "local_binary_pattern": lambda image: feature.local_binary_pattern(image[..., 0].T, 8, 1),
        "multiscale": lambda image: feature.multiscale_basic_features(image[::4, ::4], channel_axis=-1),
        "gray2rgb": lambda image: color.gray2rgb(image[..., 0].T),
    }


@pytest.mark.full
def test_same_answers() -> None:
    from skimage import data

    image = data.astronaut()
    before = {name: np.asarray(run(image)) for name, run in operations().items()}
    with tj.accelerate(), kernels_for_all_sizes():
        after = {name: np.asarray(run(image)) for name, run in operations().items()}
    for name, expected in before.items():
        assert after[name].dtype == expected.dtype, name
        assert after[name].shape == expected.shape, name
        assert after[name].tobytes() == expected.tobytes(), name
