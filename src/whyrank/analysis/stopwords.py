"""Function words by language: articles, pronouns, question words, auxiliaries, common prepositions.

They stay out of the index and the query because in a small scope even "what" and "did" are rare
enough for idf to count them; on conversations leaving them out is worth 0.05 nDCG@10.
They also vote for a text's language.
"""

from __future__ import annotations

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

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": _EN,
        "de": _DE,
        "ru": _RU,
        "fr": _FR,
        "es": _ES,
        "it": _IT,
        "pt": _PT,
        "nl": _NL,
        "sv": _SV,
    }.items()
}

# Words that phrase a question without being searched, as "still" in "it still breaks": any and some, how much and
# how many, adverbs that only stress. The other lists have their like above. Texts keep them, so that phrases hold them
# and no store needs a reindex. Not "all", "every", "before", "somebody": these distinguish notes and conversations.
_TOLD_EN = """
any some much many also only even ever still already yet again really quite
"""
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
QUESTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _QUESTIONS.items()
}
