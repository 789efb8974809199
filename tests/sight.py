"""How colours are seen: their contrast, and how far apart they are for each kind of sight."""

import numpy as np
from matplotlib.colors import to_rgb

#: How a colour is seen without one kind of cone (Machado, Oliveira and Fernandes 2009).
BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}

#: Linear light to the cones, and the cube roots of those to Oklab (Ottosson 2020).
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def linear_rgb(colour: str) -> np.ndarray:
    """The linear-light red, green and blue of a #rrggbb colour, 0 to 1 each (IEC 61966-2-1)."""
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(*two: str) -> float:
    """The contrast ratio of two #rrggbb colours, 1 to 21, as WCAG 2.2 defines it."""
    darker, lighter = sorted(linear_rgb(colour) @ (0.2126, 0.7152, 0.0722) for colour in two)
    return (lighter + 0.05) / (darker + 0.05)


def distance(one: str, other: str, blindness: str) -> float:
    """How far apart two colours are in Oklab, where distances are as people see them."""
    seen = [np.clip(BLINDNESS[blindness] @ linear_rgb(each), 0, 1) for each in (one, other)]
    here, there = (OKLAB @ np.cbrt(CONES @ light) for light in seen)
    return float(np.linalg.norm(here - there))
