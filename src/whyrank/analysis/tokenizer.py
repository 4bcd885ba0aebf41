"""Text to index tokens: language vote, stop words, stems, words, bigrams, parts of identifiers.

A language is detected by script, else by a vote of stop words. `tokens_of` and its variants analyse texts and questions
whole; all end in `run_tokens`, which makes the tokens of one word.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import snowballstemmer

from .normalize import ASSUMED, SHOWN, UNSPACED, compose, fold, pattern, text_cache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_EN = """
a an the this that these those and or but nor so if than then else as of at by for from in into on onto off over to
up with about out how what which who whom whose when where why whether i me my mine we us our ours you your yours he
him his she her hers it its they them their theirs myself yourself himself herself itself ourselves themselves am is
are was were be been being do does did doing done have has had having can could will would shall should may might
must not no there here just too very don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't
shouldn't haven't hasn't hadn't i'm i've i'll i'd you're you've you'll you'd he's she's it's we're we've we'll
they're they've they'll that's there's what's who's where's how's let's
"""
_DE = """
der die das den dem des ein eine einen einem einer eines und oder aber denn doch sondern als wie wenn weil dass daß
ob obwohl während bevor nachdem damit an am auf aus bei beim bis durch für gegen hinter in im ins mit nach neben
ohne seit über um unter vom von vor zu zum zur zwischen ich mich mir mein meine meinen meinem meiner meines du dich
dir dein deine er ihn ihm sein seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es wir uns
unser unsere ihnen euch euer eure man sich selbst dieser diese dieses diesen diesem jener jene jenes welcher welche
welches welchen welchem wer was wem wen wessen wann wo woher wohin warum wieso weshalb womit wodurch wofür wogegen woran
worauf woraus worin worüber wovon wozu bin bist
ist sind seid war warst waren wart sei wäre wären gewesen habe hast hat haben habt hatte hattest hatten hätte hätten
werde wirst wird werden werdet wurde wurden würde würden worden kann kannst können konnte konnten könnte soll sollen
sollte muss müssen musste mussten darf dürfen will wollen wollte mag möchte nicht kein keine keinen keinem keiner
nur noch schon auch so da dort hier dann dabei daran darauf daraus dazu davon sehr mehr viel viele
"""
_RU = """
и в во не на но а я он она оно мы вы они меня мне мной тебя тебе тобой его ему им её ей нею нас нам нами вас вам
вами их ими с со к ко у о об обо от до из изо за по под над при про для без через между перед около после ли же бы б
что чтобы как так когда где куда откуда почему зачем кто кого кому кем чего чему чем какой какая какое какие каких
каким какую каком сколько который которая которое которые которого которой которых которым это этот эта эти этого
этой этих этому этим тот та то те того той тех тому тем весь все всё всех всем всей был была было были быть есть
будет будут буду будем если или либо ни да нет ещё еще уже только лишь тоже также там тут здесь потом тогда сам сама
само сами себя себе собой свой своя свое свои своего своей своих мой моя мое мои моего моей твой наш наша наше наши
ваш ваша ваше ваши очень можно может могут мог могла могли надо нужно
"""
_FR = """
le la les un une des du de d l au aux ce cet cette ces et ou mais donc or ni car que qu qui quoi dont où quand
comment pourquoi combien quel quelle quels quelles si ne pas plus je j me m moi tu te t toi il elle on nous vous ils
elles lui leur leurs se s y en mon ma mes ton ta tes son sa ses notre nos votre vos à dans par pour sur sous avec
sans chez vers entre depuis pendant avant après suis es est sommes êtes sont étais était étaient été être ai as a
avons avez ont avais avait avaient eu avoir fait faire peut peuvent doit doivent sera seront serait aussi très cela
ça c n
"""
_ES = """
el la los las un una unos unas lo de del al a y e o u pero sino ni que quien quienes cual cuales cuyo donde dónde
cuando cuándo como cómo por porque qué quién cuál cuánto cuántos si no yo me mi mí mis tú te ti tu tus él ella ello
nosotros nos vosotros os ellos ellas les le se su sus nuestro nuestra vuestro este esta estos estas ese esa esos
esas aquel aquella en con sin para sobre entre desde hasta hacia ante bajo tras durante soy eres es somos son era
eras eran fue fueron sido ser estoy está están estaba estaban estado estar he has ha hemos han había habían haber
tengo tiene tienen puede pueden debe deben muy más también ya
"""
_IT = """
il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dalla dai in nel
nella nei nelle con su sul sulla per tra fra e ed o ma se che chi cui quale quali quando dove come perché quanto
quanti cosa non io mi me tu ti te lui lei si noi ci voi vi loro mio mia tuo sua suo nostro vostro questo questa
questi queste quello quella sono sei è siamo siete era erano stato stata essere ho hai ha abbiamo avete hanno aveva
avevano avere può possono deve devono anche più molto già ne
"""
_PT = """
o a os as um uma uns umas de do da dos das em no na nos nas ao aos à às por pelo pela pelos pelas com sem sob sobre
para entre até desde e ou mas nem que quem qual quais quando onde como porque quanto quantos se não eu me mim meu
minha tu te ti teu tua ele ela nós vós eles elas lhe lhes seu sua seus suas nosso nossa este esta estes estas esse
essa isso isto aquele aquela sou és é somos são era eram foi foram sido ser estou está estão estava estavam estar
tenho tem têm tinha tinham ter há pode podem deve muito mais já
"""
_NL = """
de het een en of maar want dus als dan dat die dit deze wie wat waar wanneer waarom hoe welke welk ik me mij mijn je
jij jou jouw u uw hij hem zijn zij ze haar wij we ons onze jullie hun hen er hier daar te van in op aan met voor
door over bij naar uit om tot tegen tussen onder zonder na ben bent is was waren geweest wordt worden werd werden
heb hebt heeft hebben had hadden kan kunnen kon zal zullen zou zouden moet moeten mag niet geen ook nog al wel zo
zeer veel meer
"""
_SV = """
den det en ett och eller men för att som om när var där hur varför vem vad vilken vilket vilka jag mig min mitt mina
du dig din ditt han honom hans hon henne hennes vi oss vår vårt ni er de dem deras sig sin sitt sina denna detta
dessa i på av till från med utan under över mellan efter före hos är var varit vara blir blev har hade haft ha kan
kunde ska skulle måste får inte ej också redan här mycket mer
"""

_SPOKEN = {"en": _EN, "de": _DE, "ru": _RU, "fr": _FR, "es": _ES, "it": _IT, "pt": _PT, "nl": _NL, "sv": _SV}
STOP_WORDS: dict[str, frozenset[str]] = {language: frozenset(words.split()) for language, words in _SPOKEN.items()}

# Words that phrase a question without being searched, as "still" in "it still breaks": any and some, how much and
# how many, adverbs that only stress. The other lists have their like above. Texts keep them, so that phrases hold them
# and no store needs a reindex. Not "all", "every", "before", "somebody": these distinguish notes and conversations.
_TOLD_EN = "any some much many also only even ever still already yet again really quite"
TOLD_WORDS: dict[str, frozenset[str]] = {"en": frozenset(_TOLD_EN.split())}

# Function words of scripts without spaces: particles, pronouns, question words, auxiliaries. Questions leave them away;
# texts keep them, for a word cut out of a run of letters would join its neighbours.
_UNSPACED = """
的 地 得 了 着 过 是 在 有 和 与 及 或 而 且 但 也 都 就 还 又 很 最 更 不 没 没有 吗 呢 吧 啊 呀 被 把 对 对于
关于 从 向 往 到 给 跟 比 为 为了 因 因为 由 由于 于 以 以及 之 其 此 该 这 那 这个 那个 这些 那些 我 你 您 他
她 它 我们 你们 他们 她们 它们 自己 什么 甚么 怎么 怎样 怎么样 如何 为什么 为何 哪 哪个 哪些 哪里 哪儿 哪一 谁
几 多少 多久 何 何时 何处 何地 何种 是否 能 能否 可以 会 要 请 请问 嗎 沒 沒有 這 這個 這些 個 們 我們 你們 他們
為 為什麼 什麼 怎麼 誰 幾 從 對 還 與 の は が を に へ と で も や か ね よ な から まで より など だけ ので
のに です だ である ます でした だった ました ません した して する される され いる います ある あり いた
あった この その あの これ それ あれ ここ そこ どこ いつ だれ なに なん なぜ どう どの どれ どんな どのように
いくつ いくら という について
"""
UNSPACED_WORDS = frozenset(_UNSPACED.split())

_QUESTIONS = {
    "en": "how what which who whom whose when where why is are was were do does did can could will would should",
    "de": "wie was wer wem wen wessen wann wo woher wohin warum wieso weshalb welche welcher welches ist sind",
    "ru": "что как когда где куда откуда почему зачем кто кого какой какая какие сколько чем",
    "fr": "que qui quoi où quand comment pourquoi combien quel quelle quels quelles est",
    "es": "qué quién cuál dónde cuándo cómo cuánto cuántos",
    "it": "che chi quale quali quando dove come perché quanto quanti cosa",
    "pt": "que quem qual quais quando onde como porque quanto quantos",
    "nl": "wie wat waar wanneer waarom hoe welke welk",
    "sv": "hur varför vem vad vilken vilket vilka när var",
}
QUESTION_WORDS = {language: frozenset(words.split()) for language, words in _QUESTIONS.items()}

DEFAULT_LANGUAGE = "en"
VOTING_WORDS = 400  # the beginning of a text is enough to detect its language
SURE_VOTES = 2
_LONGEST_CHUNK = 4_096  # characters of a text whose language is cached
WORDS_FOR_ONE_VOTE = 2  # in longer texts than this, one function word of a language may decide


# Separate words: a part of a path, an address or an identifier is no evidence of the language.
_SEPARATE_WORD = pattern(r"(?<![\w@./:\\-])[\p{L}\p{M}'’]+(?![\w@/:\\]|[.-]\w)")
_ASCII_SEPARATE_WORD = re.compile(r"(?<![\w@./:\\-])[a-z']+(?![\w@/:\\]|[.-]\w)", re.ASCII)
_ASCII = bytes(range(128))
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_LETTERS_OF = {
    "ja": r"\p{Hiragana}\p{Katakana}",
    "ko": r"\p{Hangul}",
    "zh": r"\p{Han}",
    "th": r"\p{Thai}",
    "ru": r"\p{Cyrillic}",
    "el": r"\p{Greek}",
    "ar": r"\p{Arabic}",
    "he": r"\p{Hebrew}",
    "hi": r"\p{Devanagari}",
    "ta": r"\p{Tamil}",
    "hy": r"\p{Armenian}",
}
_SCRIPTS = {language: pattern(f"[{letters}]") for language, letters in _LETTERS_OF.items()}
_ANY_SCRIPT = pattern(f"[{''.join(_LETTERS_OF.values())}]")
# Dashes, quotes, accents and pictures, which are all that most texts hold beyond ASCII: detected 20 times as fast.
_SCRIPTLESS = re.compile("[\u0080-\u036f\u1e00-\u1eff\u2000-\u2125\u2127-\u2bff\ufe00-\ufe0f\U0001f300-\U0001faff]+")
_LATIN = pattern(r"\p{Latin}")
LATIN_LANGUAGES = tuple(language for language in STOP_WORDS if language != "ru")
LANGUAGES = tuple(sorted({*STOP_WORDS, *_SCRIPTS}))

# Languages that each function word votes for; single letters are code.
VOTERS: dict[str, list[str]] = {}
for _language in LATIN_LANGUAGES:
    for _word in STOP_WORDS[_language]:
        if len(_word) > 1:
            VOTERS.setdefault(_word, []).append(_language)

# Function words elsewhere that are everyday words, or abbreviations, in English: alone they show no other language.
# "AI" is not "j'ai", "per week" is not "per favore", "45 min" is not "min syster".
_ENGLISH_TOO_TEXT = """
ai ante bent bin car come con dan den die dig din dir door dove era eras ha hat hen io man men met min non os par per
plus pour sin sob son till ton under van var want war ya yo
"""
_ENGLISH_TOO = frozenset(_ENGLISH_TOO_TEXT.split())
_DOUBTFUL_VOICES = 3  # so many different ones do show it ("die … hat man den …"); with accents in the text, one less

# A Japanese text is mostly Han; a fifth of kana is enough to distinguish it from Chinese.
_KANA_SHARE = 0.2


def language_of(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Return the language of a text, or the default if it cannot be detected."""
    script = script_language(text)
    return script if script is not None else latin_language(text, default)


def script_language(text: str) -> str | None:
    """Return the language of the dominant script, or None for Latin script and none."""
    if text.isascii():
        return None
    strange = text.encode("utf-8", errors="ignore").translate(None, _ASCII).decode()
    if _SCRIPTLESS.fullmatch(strange) or not _ANY_SCRIPT.search(strange):
        return None
    counts = {language: len(pattern.findall(strange)) for language, pattern in _SCRIPTS.items()}
    if counts["ja"] >= _KANA_SHARE * (counts["zh"] + counts["ja"]) > 0:
        counts["ja"] += counts["zh"]
    language, count = max(counts.items(), key=lambda pair: pair[1])
    # One Chinese character counts as three letters.
    letters_each = 3 if language in ("ja", "ko", "zh") else 1
    ascii_letters = len(text.encode("ascii", errors="ignore").translate(None, _NO_LETTERS))
    if not count or count * letters_each < ascii_letters:  # as a text with a few symbols
        return None
    return language if count * letters_each >= len(_LATIN.findall(text)) else None


@text_cache(256, _LONGEST_CHUNK)
def latin_language(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Let the stop words of a text vote; the default wins ties and silence."""
    return vote_language(standing_alone(text), default)[0]


def vote_language(words: Sequence[str], default: str = DEFAULT_LANGUAGE) -> tuple[str, str]:
    """Return the language that folded separate words vote for, and the same if they show it, else nothing."""
    words = words[:VOTING_WORDS]
    voices = function_words_in(words)
    votes: dict[str, int] = {}
    for voice, count in Counter(voices).items():
        for language in VOTERS[voice]:
            votes[language] = votes.get(language, 0) + count
    own, most = votes.pop(default, 0), max(votes.values(), default=0)
    # At equal votes the default wins, then the order of the table. One word alone ("die hard") decides nothing.
    if own >= most:
        return default, default if own > most else ""
    winner = next(language for language in LATIN_LANGUAGES if votes.get(language) == most)
    is_sure = most >= SURE_VOTES or len(words) > WORDS_FOR_ONE_VOTE
    if is_sure and (default != DEFAULT_LANGUAGE or _is_shown(winner, voices, words)):
        return winner, winner
    return default, ""


def leaning(language: str, voices: Sequence[str]) -> int:
    """Return the votes for a language minus the votes for all others together."""
    speaking, against = _sides(language)
    return sum(map(speaking.__contains__, voices)) - sum(map(against.__contains__, voices))


@lru_cache(maxsize=4)
def _sides(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the function words that vote for a language, and those that vote for any other."""
    speaking = frozenset(voice for voice, languages in VOTERS.items() if language in languages)
    return speaking, frozenset(voice for voice, languages in VOTERS.items() if {*languages} - {language})


def _is_shown(language: str, voices: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a non-English word votes for a language, or several do and no word is English."""
    its_own = {voice for voice in voices if language in VOTERS[voice]}
    if its_own - _ENGLISH_TOO:
        return True
    has_accents = any(not word.isascii() for word in words)
    is_english = any("en" in VOTERS[voice] for voice in voices)
    return not is_english and len(its_own) >= (_DOUBTFUL_VOICES - has_accents)


def standing_alone(text: str) -> list[str]:
    """Return the folded separate words of a text."""
    folded = fold(text).replace("’", "'")
    found: list[str] = (_ASCII_SEPARATE_WORD if folded.isascii() else _SEPARATE_WORD).findall(folded)
    return found


def function_words_in(words: Sequence[str]) -> list[str]:
    """Return the function words, whole or on a side of an apostrophe (don't, qu'il)."""
    voices = [*filter(VOTERS.__contains__, words)]
    for word in [word for word in words if "'" in word] if "'" in "".join(words) else ():
        voices += [side for side in {*word.split("'")} - {word} if side in VOTERS]
    return voices


def shown_language(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Return the language that the script or the function words of a text show; nothing where none does."""
    return script_language(text) or vote_language(standing_alone(text), default)[1]


def language_mark(shown: str, default: str) -> str:
    """Return the mark of a memory's language: the one it shows, or the default."""
    return f"{SHOWN}{shown}" if shown else f"{ASSUMED}{default}"


@cache
def marks_but_of(language: str) -> Mapping[str, str]:
    """Return the marks of memories that show another language than this, each with that language."""
    return {f"{SHOWN}{other}": other for other in LANGUAGES if other != language}


def marks_of_language(language: str) -> tuple[str, str]:
    """Return the marks of memories that are in a language, shown or assumed."""
    return f"{SHOWN}{language}", f"{ASSUMED}{language}"


@text_cache(16_384)
def word_language(word: str, latin: str) -> str:
    """Return the language one word is stemmed in: its own script's, or the text's Latin language."""
    return script_language(word) or latin


_ALGORITHMS = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "hy": "armenian",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
}
STUB_LETTERS = 2  # a stem this short is shared by too many words ("боюсь" becomes "бо")
# Pool of idle stemmers, by algorithm. Creating one takes longer than stemming a word.
_IDLE: dict[str, list[Any]] = {algorithm: [] for algorithm in _ALGORITHMS.values()}


@text_cache(16_384)
def is_stub(word: str, language: str) -> bool:
    """Return whether a folded word, or its stem, is so short that too many words share it."""
    algorithm = _ALGORITHMS.get(language)
    stemmed = _stemmed([word], algorithm)[0] if algorithm else word
    return min(len(word), len(stemmed)) <= STUB_LETTERS


def stem(word: str, language: str) -> str:
    """Return the stem of a folded word; instead of a stub, the word without its last letter, or the word."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None:
        return word
    stemmed = _stemmed([word], algorithm)[0]
    return stemmed if min(len(word), len(stemmed)) > STUB_LETTERS else _unstemmed(word)


def stems(words: list[str], language: str) -> list[str]:
    """Return the stems of folded words."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None:
        return words
    stemmed = _stemmed(words, algorithm)
    if min(map(len, chain(words, stemmed)), default=0) > STUB_LETTERS:  # as nearly always
        return stemmed
    pairs = zip(words, stemmed, strict=True)
    return [found if min(len(word), len(found)) > STUB_LETTERS else _unstemmed(word) for word, found in pairs]


def _unstemmed(word: str) -> str:
    # "aws" and "ads" are searched as they are: a word that cannot be found would be worse than one that finds less.
    return word[:-1] if len(word) - 1 > STUB_LETTERS else word


def _stemmed(words: list[str], algorithm: str) -> list[str]:
    """Return the stems as they come, by a stemmer of one's own: it keeps its state while it works."""
    idle = _IDLE[algorithm]
    try:
        stemmer = idle.pop()
    except IndexError:  # the first word, or one more thread at a time than ever before
        stemmer = snowballstemmer.stemmer(algorithm)
        stemmer.maxCacheSize = 0  # words are remembered further up
    stemmed: list[str] = stemmer.stemWords(words)
    idle.append(stemmer)
    return stemmed


MAX_TOKEN_LETTERS = 64  # longer ones are data (hashes, base64), cut so that they cannot bloat the index

_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+"
_JOINERS = r"-./:@'\\"
_RUN = pattern(rf"(?V1)[{UNSPACED}]+|(?:{_WORD})(?:[{_JOINERS}]+(?:{_WORD}))*(?:\+\+|\#)?")
# The same for plain ASCII, which most texts are: five times as fast.
_ASCII_RUN = re.compile(rf"\w+(?:[{_JOINERS}]+\w+)*(?:\+\+|\#)?", re.ASCII)
_UNSPACED_START = pattern(f"[{UNSPACED}]")
# Humps of an identifier; the plural of an acronym is one of them (`getURLs`).
_CAMEL = pattern(r"\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}\p{Lo}\p{Lm}]+|\p{Lu}+|\p{N}+")
_PIECES = re.compile(r"[-./:@\\_+#]+")
# The same for an identifier of ASCII, where pieces are letters and digits alone.
_ASCII_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ASCII_PIECE = re.compile(r"[A-Za-z0-9]+")
_LETTERS = pattern(r"[\p{L}\p{M}]+")
_FUNCTION_WORD = re.compile("|".join(sorted(UNSPACED_WORDS, key=lambda word: (-len(word), word))))
_HAS_LETTER_OR_DIGIT = pattern(r"[\p{L}\p{N}]")

# The plural of an acronym: no stemmer takes the s off `PDFs`, `SNPs` or `miRNAs`, only its case shows it.
_PLURAL = pattern(r"(\p{Lu}{2,})s(?!\p{Ll})")
_ASCII_PLURAL = re.compile(r"(?<![A-Z])([A-Z]{2,})s(?![a-z])")
# Where an identifier may as well be written as one word. Digits stay apart: `1-10` is not 110.
_JOINT = pattern(r"(?<=\p{L})[-_]+(?=[\p{L}\p{N}])|(?<=\p{N})[-_]+(?=\p{L})")
_ASCII_JOINT = re.compile(r"(?<=[A-Za-z])[-_]+(?=[A-Za-z0-9])|(?<=[0-9])[-_]+(?=[A-Za-z])")
# Greek letters used as a symbol (`TGF-β`, `κB`, `β2`), capitalised so that they are humps. No word of Greek has
# a single letter but its articles ο and η, which are not here; before small letters they are units (`μm`).
_GREEK = {
    "α": "Alpha", "β": "Beta", "γ": "Gamma", "δ": "Delta", "ε": "Epsilon", "ζ": "Zeta", "θ": "Theta", "ι": "Iota",
    "κ": "Kappa", "λ": "Lambda", "μ": "Mu", "ν": "Nu", "ξ": "Xi", "π": "Pi", "ρ": "Rho", "σ": "Sigma", "τ": "Tau",
    "υ": "Upsilon", "φ": "Phi", "χ": "Chi", "ψ": "Psi", "ω": "Omega",
}  # fmt: skip
_GREEK_LETTERS = "".join(_GREEK)
_SYMBOL = pattern(rf"(?<!\p{{Greek}})[{_GREEK_LETTERS}{_GREEK_LETTERS.upper()}](?![\p{{Greek}}\p{{Ll}}])")

# How German letters are written where there are none; names travel so between languages.
_UMLAUTS = {"ae": "ä", "oe": "ö", "ue": "ü"}
_APART = str.maketrans({umlaut: letters for letters, umlaut in _UMLAUTS.items()})
# Not behind a vowel or q (`Bauer`, `query`), nor where a word ends with them (`value`, `shoe`) or an l (`Michael`).
_TWO_LETTERS = re.compile(r"(?<![aeiouq])[aou]e(?=[^\W\d_])(?!l(?![^\W\d_]))")
_TWO = re.compile("[aouAOU]e")
_UMLAUT_OR_TWO = re.compile(f"[äöü]|{_TWO_LETTERS.pattern}", re.IGNORECASE)
_NAME_WITH_TWO = re.compile(rf"\b(?=[A-Z])\w*?{_TWO_LETTERS.pattern.replace('[aou]', '[aouAOU]')}")
_SHORTEST_GERMAN_STEM = 4  # letters; shorter ones are stems of too many words (`shoes`, `schö`)

# Suffixes that English joins to a word with an apostrophe; elsewhere (l'avion) both sides are words.
_CONTRACTIONS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

_SENTENCE_SIGNS = ",.?!;"  # signs that may follow a word of a question without changing its tokens


class Token(NamedTuple):
    """One index token, and whether it is a function word."""

    text: str
    is_stop_word: bool = False


def tokens_of(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the index tokens of a text; function words go unless nothing else is there."""
    composed = compose(text)
    return content_in(composed, latin_language(composed, default_language))


def content_in(composed: str, latin: str) -> tuple[str, ...]:
    """Return the same of a composed text that is written in a language."""
    tokens = tokens_in(composed, latin)
    content = tuple([token.text for token in tokens if not token.is_stop_word])
    return content or tuple([token.text for token in tokens])


def content_of(piece: str, latin: str) -> tuple[str, ...]:
    """Return the tokens of a piece of a composed text between two spaces, without function words."""
    return tuple([token.text for token in tokens_in(piece, latin) if not token.is_stop_word])


def plain_tokens(words: Sequence[str], latin: str, told: Collection[str] = ()) -> tuple[str, ...]:
    """Return the same of plain words in a language, without some words that phrase a question if it has others."""
    tokens = [token for word in words if word not in told for token in run_tokens(word, latin)]
    content = tuple([token.text for token in tokens if not token.is_stop_word])
    return content or (plain_tokens(words, latin) if told else tuple([token.text for token in tokens]))


def all_tokens(text: str, default_language: str = DEFAULT_LANGUAGE) -> list[Token]:
    """Return the tokens of a text with the function words marked, in order."""
    composed = compose(text)
    return tokens_in(composed, latin_language(composed, default_language))


def asked_tokens(
    part: str, text: str, default_language: str = DEFAULT_LANGUAGE, *, is_name: bool = False
) -> list[Token]:
    """Return the tokens of a part of a query, in its language; only names keep phrasing words."""
    latin = latin_language(compose(text), default_language)
    told = frozenset[str]() if is_name else TOLD_WORDS.get(latin, frozenset())
    kept = [run for run in runs_in(compose(part)) if fold(run) not in told]
    return [token for run in kept for token in (_asked_bigrams(run) if is_unspaced(run) else run_tokens(run, latin))]


def _asked_bigrams(letters: str) -> list[Token]:
    """Return the bigrams of a question; those inside function words are marked as stop words."""
    inside = {place for found in _FUNCTION_WORD.finditer(letters) for place in range(*found.span())}
    tokens = [token.text for token in bigrams(letters)]
    return [Token(token, inside.issuperset(range(place, place + len(token)))) for place, token in enumerate(tokens)]


def tokens_in(composed: str, latin: str) -> list[Token]:
    """Return the tokens of a composed text; its parts in Latin script are in the given language."""
    runs = runs_in(composed)
    if composed.isascii():
        return [token for run in runs for token in run_tokens(run, latin)]
    return [token for run in runs for token in (bigrams(run) if is_unspaced(run) else run_tokens(run, latin))]


def plain_words(text: str) -> list[str] | None:
    """Return the words of a text as they are written; None if it holds anything but plain words."""
    words = [word for piece in text.split() if (word := piece.rstrip(_SENTENCE_SIGNS))]
    letters = "".join(words)
    if not (letters.isascii() and letters.isalpha()):
        return None
    return words if letters.islower() or not any(map(is_camel, words)) else None


def runs_in(composed: str, *, is_spaced: bool = False) -> list[str]:
    """Return the words and identifiers of a composed text: all, or those of scripts with spaces."""
    if composed.isascii():
        return _ASCII_RUN.findall(composed)
    runs: list[str] = _RUN.findall(composed)
    return [run for run in runs if not is_unspaced(run)] if is_spaced else runs


def is_unspaced(run: str) -> bool:
    """Return whether a run is of a script without spaces: no run mixes these with others."""
    return not run.isascii() and _UNSPACED_START.match(run) is not None


def bigrams(letters: str) -> list[Token]:
    """Return the tokens of a run of a script without spaces: overlapping pairs of letters."""
    if len(letters) == 1:
        return [Token(letters)]
    return [Token(letters[i : i + 2]) for i in range(len(letters) - 1)]


@text_cache(32_768)
def run_tokens(run: str, latin: str) -> tuple[Token, ...]:
    """Return the tokens of one run of characters without spaces: the whole, and its parts if it has any."""
    folded = fold(run)[:MAX_TOKEN_LETTERS]
    if folded in STOP_WORDS.get(latin, frozenset()):
        return (Token(folded, is_stop_word=True),)
    if run.isascii() and run.isalpha() and not is_camel(run):  # as most words are: nothing to spell, to part or to join
        return (Token(stem(folded, latin)),)
    spoken = spoken_words(spelled(run))
    if spoken != [run]:
        return tuple(token for word in spoken for token in run_tokens(word, latin))
    if (singular := singular_of(run, latin)) is not None:
        whole, *tokens = word_token(joined(folded), latin), *run_tokens(singular, latin)
        return (whole, *(part for part in tokens if part != whole))
    parts = parts_of(run)
    if not parts:
        return ()
    if parts == [folded]:
        return (word_token(folded, latin),)
    words = [joined(folded), *parts]
    if run.isascii():  # stemmed all at once
        stop_words, spoken = STOP_WORDS.get(latin, frozenset()), [*filter(str.isalpha, words)]
        stemmed = dict(zip(spoken, stems(spoken, latin), strict=True))
        whole, *tokens = [Token(one, True) if one in stop_words else Token(stemmed.get(one, one)) for one in words]
    else:
        whole, *tokens = [word_token(word, latin) for word in words]
    return (whole, *(part for part in tokens if part != whole))


def singular_of(run: str, latin: str) -> str | None:
    """Return an acronym without the s of its plural, `GPUs`; but not where a word like `or` would be left."""
    if run.islower() or run[1:].islower():
        return None  # as most words are, and names
    singular = (_ASCII_PLURAL if run.isascii() else _PLURAL).sub(r"\1", run)
    return None if singular == run or fold(singular) in STOP_WORDS.get(latin, frozenset()) else singular


def spelled(run: str) -> str:
    """Write a run as others may have: Greek symbols by their names."""
    return run if run.isascii() else _SYMBOL.sub(lambda symbol: _GREEK[fold(symbol.group())], run)


def joined(folded: str) -> str:
    """Join an identifier: `night-shift`, `night_shift`, `nightShift` and `nightshift` become equal."""
    return (_ASCII_JOINT if folded.isascii() else _JOINT).sub("", folded)


def spoken_words(run: str) -> list[str]:
    """Resolve apostrophes: `Suzy's` without its ending, `l'avion` in two words."""
    if "'" not in run:
        return [run]
    head, *tail = run.split("'")
    return [word for word in (head, *(end for end in tail if fold(end) not in _CONTRACTIONS)) if word]


def parts_of(run: str) -> list[str]:
    """Split an identifier into its folded words: `getHTTPUrl`, `snake_case`, `a.b.c`, `v1.2`."""
    if run.isascii() and run.isalpha() and not is_camel(run):
        return [fold(run)[:MAX_TOKEN_LETTERS]]  # as most words are
    parts: list[str] = []
    if run.isascii():
        for piece in _ASCII_PIECE.findall(run):
            parts += _ASCII_CAMEL.findall(piece) if is_camel(piece) else [piece]
        return [part.lower()[:MAX_TOKEN_LETTERS] for part in parts]
    for piece in _PIECES.split(run):
        words = _CAMEL.findall(piece) if is_camel(piece) else [piece]
        parts.extend(fold(word)[:MAX_TOKEN_LETTERS] for word in words if _HAS_LETTER_OR_DIGIT.search(word))
    return parts


def word_token(word: str, latin: str) -> Token:
    """Return the token of one folded word."""
    language = word_language(word, latin)
    if word in STOP_WORDS.get(language, frozenset()):
        return Token(word, is_stop_word=True)
    is_word = word.isalpha() if word.isascii() else _LETTERS.fullmatch(word)
    return Token(stem(word, language) if is_word else word)


def is_camel(word: str) -> bool:
    """Return whether a word has humps: `getHTTPUrl`, `iPhone`, but neither `Suzy` nor `NASA`."""
    if word.islower() or word.isupper() or word[1:].islower():  # as most words are, and names
        return False
    return any(letter.isupper() for letter in word[1:])


def parts_of_wholes(text: str, default_language: str = DEFAULT_LANGUAGE) -> dict[str, frozenset[str]]:
    """Return the tokens that a question has only as parts of words with inner capitals, with those words.

    `GitHub` is one word in any query: `git` and `hub` are searched only where no text holds `github`.
    """
    if text.islower() or not any(map(is_camel, text.split())):
        return {}  # as most questions
    composed = compose(text)
    latin = latin_language(composed, default_language)
    parts: dict[str, set[str]] = {}
    alone: set[str] = set()
    for word in [word for run in runs_in(composed, is_spaced=True) for word in spoken_words(run)]:
        whole, *rest = [token.text for token in run_tokens(word, latin)] or [""]
        if rest and word.isalpha() and is_camel(word) and singular_of(word, latin) is None:
            for part in rest:
                parts.setdefault(part, set()).add(whole)
            rest = []
        alone.update((whole, *rest))
    return {part: frozenset(wholes) for part, wholes in parts.items() if part not in alone}


def foreign_stems(
    text: str,
    default_language: str = DEFAULT_LANGUAGE,
    wanted: Collection[str] | None = None,
    languages: Sequence[str] = LATIN_LANGUAGES,
) -> dict[str, tuple[str, ...]]:
    """Return, for each plain Latin word of a text, its other possible forms in an index.

    These are its stems in other languages than the text was detected as, and in all of them with its umlauts written
    otherwise. With `wanted` only words that are one of these terms are stemmed: of a thousand words 64 are searched.
    """
    composed = compose(text)
    latin = latin_language(composed, default_language)
    found: dict[str, tuple[str, ...]] = {}
    for run in runs_in(composed):
        tokens = run_tokens(run, latin)
        if (
            len(tokens) != 1
            or (wanted is not None and tokens[0].text not in wanted)
            or tokens[0].is_stop_word
            or is_unspaced(run)
        ):
            continue
        spellings = (run, *_respelled(run.lower()))
        others = (run_tokens(spelling, language) for spelling in spellings for language in (latin, *languages))
        stems = dict.fromkeys(other[0].text for other in others if len(other) == 1 and not other[0].is_stop_word)
        stems.pop(tokens[0].text, None)
        found[tokens[0].text] = tuple(stems)
    return found


def german_stems(
    text: str, language: str, default_language: str = DEFAULT_LANGUAGE, wanted: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the other forms of a text's tokens with umlauts, or with two letters that may be one.

    The German stemmer removes umlauts, so its stems show no accent; and a text of few words is seldom detected as
    German. Two letters are taken for an umlaut in German texts, and in names: where a word has a capital.
    """
    if text.isascii() and (not _TWO.search(text) or (language != "de" and not _NAME_WITH_TWO.search(text))):
        return {}  # as most questions
    composed = compose(text)
    latin = latin_language(composed, default_language)
    found: dict[str, tuple[str, ...]] = {}
    for run in runs_in(composed, is_spaced=True):
        if not _UMLAUT_OR_TWO.search(run) or (latin != "de" and run.islower() and run.isascii()):
            continue
        tokens = run_tokens(run, latin)
        if wanted is not None and not any(token.text in wanted for token in tokens):
            continue
        written = (run.lower(), *_respelled(run.lower()))
        for other in (run_tokens(one, spoken) for one in written for spoken in ("de", default_language)):
            for token, stemmed in zip(tokens, other, strict=True) if len(tokens) == len(other) else ():
                if stemmed != token and not stemmed.is_stop_word and len(stemmed.text) >= _SHORTEST_GERMAN_STEM:
                    found[token.text] = tuple(dict.fromkeys((*found.get(token.text, ()), stemmed.text)))
    return found


def _respelled(word: str) -> Iterator[str]:
    """Yield a word with umlauts as two letters, and the reverse: `Müller` and `Mueller` are one name.

    An `ss` needs no other spelling: in folded texts `ß` is one.
    """
    for other in (word.translate(_APART), _TWO_LETTERS.sub(lambda found: _UMLAUTS[found[0]], word)):
        if other != word:
            yield other
