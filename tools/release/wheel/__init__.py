"""The program rdzv, as a package: it runs a PyTorch program as one distributed job."""

import os

__all__ = ["find_rdzv_bin"]


def find_rdzv_bin():
    """Return the path of the program that was installed with this package.

    PATH is not searched, so that the versions agree. FileNotFoundError if it is not there.
    """
    places = []
    for directory in _directories():
        path = os.path.join(directory, "rdzv")
        if os.path.isfile(path):
            return path
        places.append(path)
    raise FileNotFoundError("rdzv is in none of: " + ", ".join(places))


def _directories():
    package = os.path.dirname(os.path.abspath(__file__))
    site = os.path.dirname(package)
    # PREFIX/lib/python3.11/site-packages: a virtual environment, --prefix, --user, the system's.
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(site))), "bin")
    # pip install --target.
    yield os.path.join(site, "bin")
    import sysconfig  # it takes some milliseconds

    yield sysconfig.get_path("scripts")
