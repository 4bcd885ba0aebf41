"""How providers are reached: from settings and keys to somebody who can be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from .config import OPENAI_KEY_VARIABLE, Config
from .embedding.models import Model
from .embedding.prompts import prompts_of
from .embedding.providers import SERVED
from .errors import ConfigError, ProviderUnavailable
from .transport.endpoint import Endpoint, Key, Patience

if TYPE_CHECKING:
    from .embedding.openai import OpenAiEmbedder, Served
    from .llm.openai import OpenAiChat

OPENAI_URL = "https://api.openai.com/v1"
MOST_KEY_BYTES = 4_096
# A batch that is turned away for a while may take so many times as long as one that is not.
_TOTAL_PER_ATTEMPT = 4

Provider = Literal["embedder", "llm"]


def served_model(config: Config) -> Served:
    """Return what settings say of the served embedding model."""
    from .embedding.openai import Served

    return Served(
        model=_said(config, "embedder.model"),
        dimension=config["embedder.dimension"],
        prompts=prompts_of(config["embedder.prompt"]),
        weight=config["embedder.weight"],
        batch=config["embedder.batch"],
    )


def served_card(config: Config) -> Model:
    """Return the served embedding model as a user chooses it."""
    missing = missing_settings(config, "embedder")
    model, host = config["embedder.model"], urlsplit(config["embedder.url"] or "").netloc
    about = f"{model} at {host}" if not missing else "a model behind an OpenAI-compatible server"
    return Model(
        SERVED,
        about,
        config["embedder.dimension"] or 0,
        (),
        0,
        served_model(config).fingerprint if model else "",
        " and ".join(f"whyrank config {key} …" for key in missing),
    )


def served_embedder(config: Config) -> OpenAiEmbedder:
    """Return the embedder behind an OpenAI-compatible server; nobody is asked yet."""
    from .embedding.openai import OpenAiEmbedder
    from .transport.asking import Transport

    served = served_model(config)
    return OpenAiEmbedder(served, Transport(endpoint(config, "embedder"), _patience(config["embedder.timeout_s"])))


def served_llm(config: Config, model: str | None = None) -> OpenAiChat:
    """Return the language model of the settings, or another that the same server has; nobody is asked yet."""
    from .llm.openai import OpenAiChat
    from .transport.asking import Transport

    name = model or _said(config, "llm.model")
    return OpenAiChat(name, Transport(endpoint(config, "llm"), _patience(config["llm.timeout_s"])))


def endpoint(config: Config, provider: Provider) -> Endpoint:
    """Return where a provider listens, and the key it is opened with, if there is one."""
    url = _said(config, f"{provider}.url")
    return Endpoint(url, provider, _key(config, provider, url))


def missing_settings(config: Config, provider: Provider) -> tuple[str, ...]:
    """Name the settings without which a provider cannot be asked."""
    return tuple(key for key in (f"{provider}.url", f"{provider}.model") if config[key] is None)


def _said(config: Config, key: str) -> str:
    value = config[key]
    if value is None:
        example = f"`whyrank config {key} …`" + (f", for instance {OPENAI_URL}" if key.endswith(".url") else "")
        raise ProviderUnavailable(f"{key} is not set", f"say it with {example}")
    return str(value)


def _patience(timeout_s: float) -> Patience:
    return Patience(total_s=_TOTAL_PER_ATTEMPT * timeout_s, attempt_s=timeout_s)


def _key(config: Config, provider: Provider, url: str) -> Key | None:
    """Return the key of the file, else of the environment; OpenAI's own variable is for OpenAI alone."""
    setting, variable = f"{provider}.key_file", f"WHYRANK_{provider.upper()}_KEY"
    if config[setting] is not None:
        return Key(_secret_in(config.place(setting), setting), setting)
    if variable in config.keys:
        return Key(config.keys[variable].strip(), variable)
    if url == OPENAI_URL and OPENAI_KEY_VARIABLE in config.keys:
        return Key(config.keys[OPENAI_KEY_VARIABLE].strip(), OPENAI_KEY_VARIABLE)
    return None


def _secret_in(file: Path, setting: str) -> str:
    try:
        if not file.is_file():
            raise ConfigError(
                f"{setting} = {str(file)!r} is no file", "name a file that holds the key and nothing else"
            )
        with file.open("rb") as opened:
            raw = opened.read(MOST_KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is no path"
        raise ConfigError(f"{setting} = {str(file)!r} cannot be read: {said}", "check the path") from error
    if len(raw) > MOST_KEY_BYTES:
        raise ConfigError(f"{setting} = {str(file)!r} is too long for a key", "it must hold the key and nothing else")
    return raw.decode("ascii", errors="replace").strip()
