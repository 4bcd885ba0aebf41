"""Detect the language of a text by script, else by a vote of stop words; Snowball stems, and spellings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import snowballstemmer

from .caches import text_cache
from .normalize import SIGN, fold, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
_WORD = pattern(r"(?<![\w@./:\\-])[\p{L}\p{M}'’]+(?![\w@/:\\]|[.-]\w)")
_ASCII_WORD = re.compile(r"(?<![\w@./:\\-])[a-z']+(?![\w@/:\\]|[.-]\w)", re.ASCII)
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

SHOWN = f"in{SIGN}"  # how the mark of a language begins that a text shows …
ASSUMED = f"as{SIGN}"  # … and that of the language setting, on a text that shows none


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
    return voted(standing_alone(text), default)[0]


def voted(words: Sequence[str], default: str = DEFAULT_LANGUAGE) -> tuple[str, str]:
    """Return the language that folded separate words vote for, and the same if they show it, else nothing."""
    words = words[:VOTING_WORDS]
    voices = voices_in(words)
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
    found: list[str] = (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)
    return found


def voices_in(words: Sequence[str]) -> list[str]:
    """Return the function words, whole or on a side of an apostrophe (don't, qu'il)."""
    voices = [*filter(VOTERS.__contains__, words)]
    for word in [word for word in words if "'" in word] if "'" in "".join(words) else ():
        voices += [side for side in {*word.split("'")} - {word} if side in VOTERS]
    return voices


def shown_language(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Return the language that the script or the function words of a text show; nothing where none does."""
    return script_language(text) or voted(standing_alone(text), default)[1]


def language_mark(shown: str, default: str) -> str:
    """Return the mark of a memory's language: the one it shows, or the default."""
    return f"{SHOWN}{shown}" if shown else f"{ASSUMED}{default}"


def marks_but_of(language: str) -> dict[str, str]:
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


# Endings that the stemmers remove, the longest chains first of all: every tail of one may be missing.
_ENDINGS = {
    "en": "izations isations ationally ational ations atively atives ators ating ated ates atory ancies encies ances "
    "ences antly ently ants ents ability abilities ibility ibilities ables ably ibles ibly alities ally alisms alists "
    "fulness fully iveness ively ives ousness ously ness nesses ments mental ically icals icities ics ities isms ists "
    "istic izers izing ized izes isers ising ised ises ions ingly ings edly lessly lessness ologies ologists ional "
    "ers ors ies ied iest ier ily iness ing ed es er est s e y ly",
    "de": "ungen ungs heiten keiten lichkeit lichen lichste igkeiten igen ischen ieren ierung ierte ierten erinnen "
    "ern enden ende ten test tet te en em er es e n s st t",
    "fr": "ations ateurs atrices ements issement amment emment ités ives ifs euses eurs ables ibles ismes istes ances "
    "ences issait issant issent aient erait erons antes ants ées és er ez ons ent ais ait ant aux es e s",
    "es": "aciones adoras adores amientos imientos amente mente idades ables ibles istas ismos ancias encias iendo "
    "ando aron ieron aban ados adas idos idas ar er ir as os es a o s",
    "it": "azioni atori atrici amenti imenti amente mente ità abili ibili isti ismi anze enze ando endo avano ati "
    "ate uti ute are ere ire ano ono i e a o",
    "pt": "ações adores adoras amentos imentos amente mente idades áveis íveis istas ismos âncias ências ando endo "
    "indo aram avam ados adas idos idas ar er ir as os es a o s",
    "nl": "ingen heden lijke lijks ingen aties ering eringen ende ten den sten en er es je jes te de t d s",
    "sv": "ningarna ningar heterna heter ligen ligt liga arna erna orna andet ande ende aste ade are ar er or en et a "
    "e s t",
    "ru": "ированиями ирования ированный ированы ировать ованиями ования ованный овать ениями ением ениях ения ение "
    "аниями анием ания ание остями остью ости ость тельного тельный тельная тельно ского ской ские ский ная ного ные "
    "ный ыми ими ого его ому ему ами ями ах ях ов ев ей ой ый ий ая яя ое ее ые ие ать ять ить еть ала али ила или "
    "ает ают ует уют ет ут ют ит ат ят а я о е ы и у ю ь",
}
# Inflections before which a word may change ("runn-ing", "citi-es"), tried whatever the beginning ends with.
_ALWAYS = 3  # letters; longer endings only where the beginning ends with a part of them


# Letters that the stemmers write otherwise, anywhere in a word.
_RESPELLED: Mapping[str, Mapping[int, str | int]] = {
    "de": {ord("ä"): "a", ord("ö"): "o", ord("ü"): "u", ord("ß"): "ss"},
    "el": str.maketrans("άέήίόύώϊϋΐΰ", "αεηιουωιυιυ"),
    "es": str.maketrans("áéíóú", "aeiou"),
    "it": str.maketrans("áéíóú", "àèìòù"),
    "ru": str.maketrans("ё", "е"),
}


def spellings(beginning: str, latin: str) -> tuple[str, ...]:
    """Return a prefix as a text writes it, and as the stemmer of the text's language does."""
    language = script_language(beginning) or latin
    return tuple(dict.fromkeys((beginning, beginning.translate(_RESPELLED.get(language, {})))))


@text_cache(4_096)
def stems_beginning(beginning: str, latin: str) -> tuple[str, ...]:
    """Return stems of words that begin so although the stem itself does not, in the language of a text."""
    language = script_language(beginning) or latin
    if len(beginning) <= STUB_LETTERS or not beginning.isalpha():
        return ()
    stems = (stem(word, language) for word in dict.fromkeys(_completed(beginning, language)))
    known = spellings(beginning, latin)
    return tuple(dict.fromkeys(found for found in stems if not found.startswith(known)))


def foreign_stems_beginning(beginning: str, latin: str) -> tuple[str, ...]:
    """Return the same in the Latin languages that a text was not taken for."""
    others = _others(beginning, latin)
    return tuple(dict.fromkeys(found for language in others for found in stems_beginning(beginning, language)))


def foreign_spellings(beginning: str, latin: str) -> tuple[str, ...]:
    """Return a prefix as the stemmers of these languages write it, where that differs."""
    written = (one for language in _others(beginning, latin) for one in spellings(beginning, language)[1:])
    return tuple(dict.fromkeys(written))


def _others(beginning: str, latin: str) -> list[str]:
    return [] if script_language(beginning) else [language for language in LATIN_LANGUAGES if language != latin]


def _completed(beginning: str, language: str) -> Iterator[str]:
    """Yield the words that a prefix may belong to: itself, and completed by the rest of an ending."""
    yield beginning
    for ending in _ENDINGS.get(language, "").split():
        if len(ending) <= _ALWAYS:
            yield beginning + ending
        for held in range(1, len(ending)):
            if beginning.endswith(ending[:held]):
                yield beginning + ending[held:]


# Letters that Unicode does not take apart, as they are typed where there are none of them.
_TYPED = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t", "ё": "е",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_MARKED = ((0xC0, 0x250), (0x1E00, 0x1F00), (0x386, 0x3CF), (0x1F00, 0x2000))  # Latin and Greek letters with marks
_MARKS = range(0x300, 0x370)  # combining marks, for letters that have no precomposed form
# A letter that may have an accent; the letters of Greek that have none are many.
_ACCENT = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1fffάέήίόύώϊϋΐΰё]")
_TWO_LETTERS = re.compile("([aou])e|aa")  # typed forms of umlauts and å


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """Return the typed form of each letter: without its marks, and with umlauts as two letters."""
    plain: dict[int, str] = dict.fromkeys(_MARKS, "")
    for first, end in _MARKED:
        for number in range(first, end):
            letters = unicodedata.normalize("NFD", chr(number))
            if len(letters) > 1 and all(ord(mark) in _MARKS for mark in letters[1:]):
                plain[number] = letters[0]
    plain |= {ord(letter): typed for letter, typed in _TYPED.items()}
    return plain, plain | {ord(letter): typed for letter, typed in _GERMAN.items()}


def plain_spellings(word: str) -> tuple[str, ...]:
    """Return the spellings of a folded word or token without accents: none, one or a few.

    An accent may keep an English stemmer from a suffix it removes otherwise: `résumé` is searched as `resume`, `Hélène`
    as `Helene`, and both are stemmed.
    """
    if word.isascii():
        return ()
    plain, apart = (word.translate(table) for table in _tables())
    is_stemmed = plain.isascii() and plain.isalpha()
    found = dict.fromkeys((plain, apart, *((stem(plain, "en"), stem(apart, "en")) if is_stemmed else ())))
    found.pop(word, None)
    return tuple(found)


def may_hold_umlauts(word: str) -> bool:
    """Return whether a folded word has two letters that may have been typed for an umlaut."""
    return _TWO_LETTERS.search(word) is not None


@text_cache(4_096)
def bare_spelling(word: str) -> str:
    """Return the common form of a folded word's spellings: no marks, and one letter where two may be one."""
    return _TWO_LETTERS.sub(lambda two: two[1] or "a", word.translate(_tables()[0]))


def are_spellings(one: str, other: str) -> bool:
    """Return whether two folded words differ only in accents: omitted, or typed as one letter or two.

    `Baeckerei Muller` is `Bäckerei Müller`; but `Moller` is not `Moeller`, for neither has an accent.
    """
    if bare_spelling(one) != bare_spelling(other):
        return False
    return any(
        _typed(a).fullmatch(b) for a, b in ((one, other), (other, one), *((one, b) for b in plain_spellings(other)))
    )


@text_cache(1_024)
def _typed(word: str) -> re.Pattern[str]:
    """Return a pattern that matches a word in every typed form of its accents."""
    plain, apart = _tables()
    ways = (dict.fromkeys((letter, letter.translate(plain), letter.translate(apart))) for letter in word)
    return re.compile("".join("|".join(map(re.escape, way)).join(("(?:", ")")) for way in ways))


def accented_in(text: str) -> list[str]:
    """Return the tokens of a space-separated text that may have accents."""
    if text.isascii() or not _ACCENT.search(text):
        return []  # as English is, and scripts without accents: one pass decides it for a thousand words
    return [token for token in text.split(" ") if not token.isascii() and _ACCENT.search(token)]


def by_plain_spelling(tokens: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents among some, by how they are typed without."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens:
        for plain in plain_spellings(token):
            found[plain] = (*found.get(plain, ()), token)
    return found


def typed_beginning(known: Mapping[str, tuple[str, ...]], beginning: str) -> set[str]:
    """Return the accented tokens whose plain spelling has this prefix."""
    return {token for plain, tokens in known.items() if plain.startswith(beginning) for token in tokens}


def typed_as(token: str) -> tuple[str, ...]:
    """Return the plain spellings to look up for a query token: itself, and those of its letters."""
    return (token,) if token.isascii() else (token, *plain_spellings(token))
