"""Twenty pages, each with its translation, and a question in each of the two languages: all of them made up."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page as it is written in one language, and what somebody asks in that language who means it."""

    language: str
    text: str
    question: str


class Pair(NamedTuple):
    """A page and its translation."""

    slug: str
    english: Page
    other: Page


def _pair(slug: str, language: str, english: str, asked: str, other: str, other_asked: str) -> Pair:
    return Pair(slug, Page("en", english, asked), Page(language, other, other_asked))


PAIRS = (
    _pair(
        "postgres-backup", "de",
        "# Postgres backup\n\nThe Postgres backup runs every night at 02:00 with pg_dump on the host atlas. "
        "To restore it, stop the API, drop the database and load the newest dump from the NAS.",
        "How do we restore the Postgres backup?",
        "# Postgres-Backup\n\nDas Postgres-Backup läuft jede Nacht um 02:00 mit pg_dump auf dem Host atlas. "
        "Zum Wiederherstellen die API stoppen, die Datenbank löschen und den neuesten Dump vom NAS laden.",
        "Wie stellen wir das Postgres-Backup wieder her?",
    ),
    _pair(
        "on-call", "de",
        "# On-call rota\n\nEach week one engineer is on call. The pager goes to PagerDuty, and the handover is on "
        "Monday at 10:00 in the Slack channel #ops.",
        "Where is the on-call handover announced in Slack?",
        "# Rufbereitschaft\n\nJede Woche hat eine Person aus dem Team Rufbereitschaft. Alarme gehen an PagerDuty, "
        "die Übergabe ist montags um 10:00 im Slack-Kanal #ops.",
        "In welchem Slack-Kanal ist die Übergabe der Rufbereitschaft?",
    ),
    _pair(
        "vpn", "de",
        "# VPN access\n\nInstall WireGuard, ask Petra for a key and import the file office.conf. Without the VPN the "
        "internal Grafana cannot be reached.",
        "Who gives me a WireGuard key for the VPN?",
        "# VPN-Zugang\n\nWireGuard installieren, Petra um einen Schlüssel bitten und die Datei office.conf "
        "importieren. "
        "Ohne VPN ist das interne Grafana nicht erreichbar.",
        "Wer gibt mir einen WireGuard-Schlüssel für das VPN?",
    ),
    _pair(
        "release", "de",
        "# Release checklist\n\nTag the commit, wait for the CI pipeline, deploy to staging, run the smoke tests, then "
        "promote the build to production with Argo CD.",
        "What happens after the deploy to staging in a release?",
        "# Release-Checkliste\n\nDen Commit taggen, auf die CI-Pipeline warten, nach Staging deployen, die Smoke-Tests "
        "laufen lassen und den Build dann mit Argo CD in Produktion bringen.",
        "Was kommt bei einem Release nach dem Deploy auf Staging?",
    ),
    _pair(
        "coffee-machine", "de",
        "# Coffee machine\n\nThe Jura in the kitchen is descaled every two months. The tablets are in the "
        "drawer below, "
        "and the program takes forty minutes.",
        "How often is the Jura coffee machine descaled?",
        "# Kaffeemaschine\n\nDie Jura in der Küche wird alle zwei Monate entkalkt. Die Tabletten liegen in "
        "der Schublade "
        "darunter, und das Programm dauert vierzig Minuten.",
        "Wie oft wird die Jura in der Küche entkalkt?",
    ),
    _pair(
        "travel", "de",
        "# Travel expenses\n\nHand in receipts through Expensify before the fifth of the month. Trains are "
        "booked second "
        "class, flights only above six hours of train.",
        "When must travel receipts be in Expensify?",
        "# Reisekosten\n\nBelege bis zum fünften des Monats über Expensify einreichen. Bahnfahrten werden "
        "zweiter Klasse "
        "gebucht, Flüge nur ab sechs Stunden Bahnfahrt.",
        "Bis wann müssen Belege in Expensify sein?",
    ),
    _pair(
        "kubernetes", "de",
        "# Kubernetes upgrade\n\nDrain one node at a time, upgrade the kubelet to 1.29, uncordon it and watch the "
        "Prometheus alerts for ten minutes before the next one.",
        "How long do we watch Prometheus during the Kubernetes upgrade?",
        "# Kubernetes-Upgrade\n\nImmer nur einen Node drainen, das kubelet auf 1.29 heben, den Node wieder "
        "freigeben und "
        "zehn Minuten die Prometheus-Alerts beobachten, bevor der nächste drankommt.",
        "Wie lange beobachten wir Prometheus beim Kubernetes-Upgrade?",
    ),
    _pair(
        "newsletter", "de",
        "# Newsletter\n\nThe newsletter goes out on the first Tuesday with Mailchimp. Lena writes it, Tom reads it "
        "before it is sent to the list of customers.",
        "Who reads the Mailchimp newsletter before it is sent?",
        "# Newsletter\n\nDer Newsletter geht am ersten Dienstag mit Mailchimp raus. Lena schreibt ihn, Tom "
        "liest gegen, "
        "bevor er an die Kundenliste geht.",
        "Wer liest den Mailchimp-Newsletter vor dem Versand?",
    ),
    _pair(
        "oauth", "de",
        "# OAuth tokens\n\nAccess tokens live fifteen minutes, refresh tokens thirty days. Keycloak rotates "
        "the signing "
        "keys every ninety days.",
        "How long do OAuth refresh tokens live in Keycloak?",
        "# OAuth-Tokens\n\nAccess-Tokens gelten fünfzehn Minuten, Refresh-Tokens dreißig Tage. Keycloak tauscht die "
        "Signaturschlüssel alle neunzig Tage.",
        "Wie lange gelten Refresh-Tokens in Keycloak?",
    ),
    _pair(
        "garden", "de",
        "# Garden watering\n\nThe tomatoes get water in the morning, the hedge twice a week. The Gardena timer is "
        "behind the shed, its battery is changed in April.",
        "Where is the Gardena timer for watering the tomatoes?",
        "# Garten gießen\n\nDie Tomaten bekommen morgens Wasser, die Hecke zweimal pro Woche. Der Gardena-Timer hängt "
        "hinter dem Schuppen, die Batterie wird im April gewechselt.",
        "Wo hängt der Gardena-Timer für die Tomaten?",
    ),
    _pair(
        "invoices", "de",
        "# Invoice workflow\n\nInvoices are scanned into DATEV, checked by Sabine and paid on Thursdays. Above 5000 "
        "euros Markus signs as well.",
        "Who signs DATEV invoices above 5000 euros?",
        "# Rechnungen\n\nRechnungen werden in DATEV gescannt, von Sabine geprüft und donnerstags bezahlt. Ab 5000 Euro "
        "unterschreibt auch Markus.",
        "Wer unterschreibt Rechnungen ab 5000 Euro?",
    ),
    _pair(
        "laptop", "de",
        "# New laptop\n\nInstall Homebrew, clone the dotfiles, run the script bootstrap.sh and sign in to 1Password "
        "before anything else.",
        "What is installed first on a new laptop, Homebrew or 1Password?",
        "# Neuer Laptop\n\nHomebrew installieren, die Dotfiles klonen, das Skript bootstrap.sh ausführen und sich vor "
        "allem anderen bei 1Password anmelden.",
        "Was macht man auf einem neuen Laptop mit Homebrew und 1Password?",
    ),
    _pair(
        "terraform", "fr",
        "# Terraform state\n\nThe Terraform state is in the S3 bucket infra-state, locked with DynamoDB. "
        "Nobody applies "
        "from a laptop, only GitLab does.",
        "Where is the Terraform state kept and locked?",
        "# État Terraform\n\nL'état Terraform se trouve dans le bucket S3 infra-state, verrouillé avec DynamoDB. "
        "Personne n'applique depuis un portable, seul GitLab le fait.",
        "Où se trouve l'état Terraform et comment est-il verrouillé ?",
    ),
    _pair(
        "museum", "fr",
        "# Museum visit\n\nThe Musée d'Orsay is closed on Mondays. Tickets are cheaper online, and on Thursday it is "
        "open until 21:45.",
        "On which day is the Musée d'Orsay closed?",
        "# Visite du musée\n\nLe Musée d'Orsay est fermé le lundi. Les billets sont moins chers en ligne, et "
        "le jeudi il "
        "est ouvert jusqu'à 21 h 45.",
        "Quel jour le Musée d'Orsay est-il fermé ?",
    ),
    _pair(
        "api-limits", "fr",
        "# API rate limits\n\nThe public API allows 60 requests per minute and answers 429 above that. Partners with a "
        "Stripe plan get 600.",
        "How many API requests per minute do Stripe partners get?",
        "# Limites de l'API\n\nL'API publique autorise 60 requêtes par minute et répond 429 au-delà. Les partenaires "
        "avec un plan Stripe en ont 600.",
        "Combien de requêtes par minute ont les partenaires Stripe de l'API ?",
    ),
    _pair(
        "router", "es",
        "# Office router\n\nThe MikroTik router restarts on Sundays at 04:00. The admin password is in Bitwarden under "
        "the name router-madrid.",
        "Where is the admin password of the MikroTik router?",
        "# Router de la oficina\n\nEl router MikroTik se reinicia los domingos a las 04:00. La contraseña de "
        "admin está "
        "en Bitwarden con el nombre router-madrid.",
        "¿Dónde está la contraseña de admin del router MikroTik?",
    ),
    _pair(
        "paella", "es",
        "# Paella\n\nFor six people 600 grams of bomba rice, saffron and a litre and a half of stock. Never "
        "stir it, and "
        "let it rest for five minutes.",
        "How much bomba rice is needed for a paella?",
        "# Paella\n\nPara seis personas 600 gramos de arroz bomba, azafrán y litro y medio de caldo. No se "
        "remueve nunca, "
        "y se deja reposar cinco minutos.",
        "¿Cuánto arroz bomba hace falta para una paella?",
    ),
    _pair(
        "redis", "es",
        "# Redis cache\n\nKeys expire after one hour. When Redis is full it evicts with allkeys-lru, and the "
        "alert fires "
        "at 80 % of 4 GB.",
        "When does the alert of the Redis cache fire?",
        "# Caché Redis\n\nLas claves caducan después de una hora. Cuando Redis está lleno usa allkeys-lru, y la alerta "
        "salta al 80 % de 4 GB.",
        "¿Cuándo salta la alerta de la caché Redis?",
    ),
    _pair(
        "telegram-bot", "ru",
        "# Telegram bot\n\nThe Telegram bot runs on the host orion in Docker. Its token is in Vault, and it "
        "is restarted "
        "with docker compose restart bot.",
        "Where does the Telegram bot run and where is its token?",
        "# Бот Telegram\n\nБот Telegram работает на хосте orion в Docker. Его токен хранится в Vault, а перезапускают "
        "его командой docker compose restart bot.",
        "Где работает бот Telegram и где хранится его токен?",
    ),
    _pair(
        "clickhouse", "ru",
        "# ClickHouse cluster\n\nThe ClickHouse cluster has three shards with two replicas each. Partitions older than "
        "90 days are moved to S3.",
        "After how many days does ClickHouse move partitions to S3?",
        "# Кластер ClickHouse\n\nВ кластере ClickHouse три шарда по две реплики. Партиции старше 90 дней переносятся "
        "в S3.",
        "Через сколько дней ClickHouse переносит партиции в S3?",
    ),
)  # fmt: skip
