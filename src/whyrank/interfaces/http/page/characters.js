// Characters that nobody sees, shown by their numbers: the table of interfaces/sanitize.py, and a test compares them.

const HIDDEN =
  "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e" +
  "\\u2060-\\u206f\\u3164\\ud800-\\udfff\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
  "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";
const EMOJI = "\\xa9\\xae\\u203c-\\u2bff\\u3030-\\u3299\\u{1f000}-\\u{1faff}";
const JOINING = "\\u0620-\\u074f\\u0750-\\u077f\\u08a0-\\u08ff\\u0900-\\u0dff\\u1000-\\u109f\\u1780-\\u17b3\\u17b6-\\u17ff\\u1820-\\u18ff";
const KEPT =
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])` +
  `|(?<=[${EMOJI}\\ufe0f])\\u200d(?=[${EMOJI}])` +
  `|(?<=[${EMOJI}])[\\ufe0e\\ufe0f](?![\\ufe00-\\ufe0f\\u{e0000}-\\u{e0fff}])` +
  "|(?<=[0-9#*])\\ufe0f(?=\\u20e3)" +
  "|(?<=\\u{1f3f4})\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}" +
  "|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}";
const ONE_HIDDEN = new RegExp(`[${HIDDEN}]`, "u");
const KEPT_OR_HIDDEN = new RegExp(`${KEPT}|([${HIDDEN}]+)`, "gu");
const MOST_SHOWN = 4;

/** Write hidden characters as ⟨U+202E⟩, a long run of them by its first and their number. */
export function visible(text) {
  if (!ONE_HIDDEN.test(text)) return text;
  return text.replaceAll("\r\n", "\n").replace(KEPT_OR_HIDDEN, (found, run) => {
    if (run === undefined) return found;
    const letters = [...run].map((letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
    if (letters.length <= MOST_SHOWN) return letters.map((letter) => `⟨${letter}⟩`).join("");
    return `⟨${letters[0]} and ${(letters.length - 1).toLocaleString("en")} more hidden characters⟩`;
  });
}
