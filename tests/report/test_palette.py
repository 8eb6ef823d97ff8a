"""The palette keeps what its docstring promises, in linear sRGB and OKLab."""

from importlib import resources

import numpy as np
import pytest

from demonet.report.palette import CATEGORICAL, DARK_TWIN, GROUND, NEUTRAL, colour

# Machado, Oliveira and Fernandes (2009), full severity, acting on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#000000")


def linear(colours):
    srgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def closest_pair(colours, vision):
    """The smallest OKLab distance between two of the colours as seen with the given vision."""
    seen = np.clip(linear(colours) @ np.array(VISION[vision]).T, 0, 1)
    lms = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
    lms.append([0.0883024619, 0.2817188376, 0.6299787005])
    lab = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099]]
    lab.append([0.0259040371, 0.7827717662, -0.808675766])
    points = np.cbrt(seen @ np.array(lms).T) @ np.array(lab).T
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return distance[np.triu_indices(len(colours), 1)].min()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_no_vision_confuses_colours_more_than_okabe_ito(theme):
    colours = [pair[theme] for pair in CATEGORICAL]
    worst = min(closest_pair(OKABE_ITO, vision) for vision in VISION)
    assert min(closest_pair(colours, vision) for vision in VISION) >= worst


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_colour_has_a_contrast_of_three_with_its_ground(theme):
    luminance = linear([pair[theme] for pair in (*CATEGORICAL, NEUTRAL, GROUND)]) @ [0.2126, 0.7152, 0.0722]
    lighter, darker = np.maximum(luminance[:-1], luminance[-1]), np.minimum(luminance[:-1], luminance[-1])
    assert ((lighter + 0.05) / (darker + 0.05)).min() >= 3


def test_every_colour_has_a_twin_and_the_style_sheet_has_the_ground():
    assert len(DARK_TWIN) == len(CATEGORICAL) + 1
    assert colour(0) == colour(len(CATEGORICAL)) != colour(1)
    style = resources.files("demonet.report").joinpath("style.css").read_text(encoding="utf-8")
    assert f"--surface: light-dark({GROUND[0]}, {GROUND[1]});" in style
