/* The blocks of markdown told by how lines begin: the twin of `whyrank.ingest.blocks`, function by function.

   No letter beyond ASCII has a meaning here. A line that begins with one is text, as one that begins with a letter. */

#include "kernel.h"

#include <string.h>

#define TAB_COLUMNS 4
#define MOST_LEVELS 6
#define MOST_DIGITS 9 /* of the number of an item */
#define FENCE_LETTERS 3
#define RULE_LETTERS 3
#define MOST_CELLS 0x10000
#define DEEP_COLUMNS 20
#define UNCERTAIN (-1) /* where a block ends: only the parser knows */

typedef struct {
    PyObject *lines; /* a tuple */
    Py_ssize_t end; /* where the last line ends that is one */
    int is_unreadable; /* a line has half of a pair, or is no text, which leaves an exception: then all are blank */
} File;

typedef struct {
    const char *text;
    Py_ssize_t size;
} Line;

typedef struct {
    Py_ssize_t start, end;
    int level, is_whole;
} Block;

/* What begins an item: which kind of list it is of, its number if it has one, and where what it holds begins. */
typedef struct {
    char kind;
    const char *number;
    Py_ssize_t digits, inside;
} Item;

static Line line_at(File *file, Py_ssize_t number)
{
    Line line = {"", 0};
    if (file->is_unreadable)
        return line;
    const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(file->lines, number), &line.size);
    if (text != NULL)
        return (Line){text, line.size};
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    file->is_unreadable = 1;
    return (Line){"", 0};
}

/* -- lines ---------------------------------------------------------------------------------------------------- */

static int is_space(char letter)
{
    return letter == ' ' || letter == '\t';
}

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static int is_small(char letter)
{
    return letter >= 'a' && letter <= 'z';
}

static int is_letter(char letter)
{
    return is_small(letter) || (letter >= 'A' && letter <= 'Z');
}

/* Tell whether a line that begins so is text whatever follows. */
static int begins_text(char letter)
{
    return is_letter(letter) || (letter & 0x80);
}

static Py_ssize_t spaces_before(Line line)
{
    Py_ssize_t count = 0;
    while (count < line.size && is_space(line.text[count]))
        count++;
    return count;
}

static int is_blank(Line line)
{
    return spaces_before(line) == line.size;
}

/* Return a line without the spaces it ends with. */
static Line bare_end(Line line)
{
    while (line.size && is_space(line.text[line.size - 1]))
        line.size--;
    return line;
}

static Line from(Line line, Py_ssize_t place)
{
    return (Line){line.text + place, line.size - place};
}

static int begins_with(Line line, const char *beginning)
{
    Py_ssize_t size = (Py_ssize_t)strlen(beginning);
    return line.size >= size && !memcmp(line.text, beginning, (size_t)size);
}

static int has(Line line, char letter)
{
    return line.size && memchr(line.text, letter, (size_t)line.size) != NULL;
}

/* Return how many times a letter stands at the beginning. */
static Py_ssize_t run_of(Line line, char letter)
{
    Py_ssize_t count = 0;
    while (count < line.size && line.text[count] == letter)
        count++;
    return count;
}

static Py_ssize_t count_of(Line line, char letter)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < line.size; i++)
        count += line.text[i] == letter;
    return count;
}

/* Return how many columns the first letters of a line take. */
static Py_ssize_t columns(Line line, Py_ssize_t letters)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < letters; i++)
        count += line.text[i] == '\t' ? TAB_COLUMNS - count % TAB_COLUMNS : 1;
    return count;
}

static Py_ssize_t indent(Line line)
{
    return columns(line, spaces_before(line));
}

/* Tell whether a line, which is not empty, is drawn more than written. */
static int is_drawn(Line line)
{
    int is_written = 0;
    for (Py_ssize_t i = 0; i < line.size; i++) {
        if (line.text[i] == '\0' || strchr("-:|=_* \t", line.text[i]) == NULL)
            return 0;
        is_written = is_written || !is_space(line.text[i]);
    }
    return is_written;
}

/* Tell whether a line is a letter so many times or more, and spaces. */
static int is_rule_of(Line line, char letter, Py_ssize_t least)
{
    line = bare_end(line);
    return line.size >= least && run_of(line, letter) == line.size;
}

static int is_rule(Line line)
{
    return is_rule_of(line, '-', RULE_LETTERS) || is_rule_of(line, '*', RULE_LETTERS) ||
           is_rule_of(line, '_', RULE_LETTERS);
}

/* Return the level of a heading, or 0. */
static int heading(Line line)
{
    Py_ssize_t level = run_of(line, '#');
    if (level < 1 || level > MOST_LEVELS)
        return 0;
    Line title = bare_end(from(line, level));
    Py_ssize_t before = spaces_before(title);
    int is_title = before && before < title.size && title.text[before] != '#' && title.text[title.size - 1] != '#';
    return is_title ? (int)level : 0;
}

/* Return how long the fence is that a line opens, or 0. */
static Py_ssize_t fence(Line line)
{
    Py_ssize_t ticks = run_of(line, '`'), waves = run_of(line, '~');
    if (ticks >= FENCE_LETTERS)
        return has(from(line, ticks), '`') ? 0 : ticks;
    return waves >= FENCE_LETTERS ? waves : 0;
}

static int closes(Line line, char letter, Py_ssize_t length)
{
    Py_ssize_t before = run_of(line, ' ');
    return before < TAB_COLUMNS && is_rule_of(from(line, before), letter, length);
}

/* Return where the marker of an item ends, or 0; its kind, and its number if it has one. */
static Py_ssize_t marker(Line line, Item *item)
{
    Py_ssize_t digits = 0;
    if (line.size && line.text[0] != '\0' && strchr("-+*", line.text[0]) != NULL) {
        *item = (Item){line.text[0], NULL, 0, 0};
        return 1;
    }
    while (digits < line.size && is_digit(line.text[digits]))
        digits++;
    if (!digits || digits > MOST_DIGITS || digits == line.size || !(line.text[digits] == '.' || line.text[digits] == ')'))
        return 0;
    *item = (Item){line.text[digits], line.text, digits, 0};
    return digits + 1;
}

static int is_item(Line line, Item *item)
{
    Py_ssize_t end = marker(line, item);
    Py_ssize_t spaces = end ? run_of(from(line, end), ' ') : 0;
    item->inside = end + spaces;
    return spaces >= 1 && spaces <= TAB_COLUMNS && item->inside < line.size && !is_space(line.text[item->inside]);
}

/* Tell whether a line may begin an item, and be no more than that. */
static int is_like_item(Line line)
{
    Item item;
    Py_ssize_t end = marker(line, &item);
    return end && (end == line.size || is_space(line.text[end]));
}

/* Tell whether something may be nested too deep for the parser. */
static int is_deep(Line line)
{
    Py_ssize_t letters = 0;
    while (letters < line.size && line.text[letters] != '\0' && strchr("-+*>0123456789.) \t", line.text[letters]) != NULL)
        letters++;
    return columns(line, letters) >= DEEP_COLUMNS;
}

/* -- tags and links ------------------------------------------------------------------------------------------- */

static int is_one_of(Line name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (name.size == (Py_ssize_t)strlen(*names)) {
            Py_ssize_t i = 0;
            while (i < name.size && (name.text[i] | 0x20) == ((*names)[i] | 0x20))
                i++;
            if (i == name.size)
                return 1;
        }
    return 0;
}

/* Tell whether a line is one tag alone, and which. */
static int is_tag(Line line, Line *name)
{
    static const char *const ending_otherwise[] = {"pre", "script", "style", "textarea", NULL};
    if (!line.size || line.text[0] != '<')
        return 0;
    *name = bare_end(from(line, 1 + (line.size > 1 && line.text[1] == '/')));
    if (name->size < 2 || name->text[--name->size] != '>' || !is_letter(name->text[0]))
        return 0;
    for (Py_ssize_t i = 0; i < name->size; i++)
        if (!is_letter(name->text[i]) && !is_digit(name->text[i]) && name->text[i] != '-')
            return 0;
    return !is_one_of(*name, ending_otherwise);
}

/* Tell whether a tag ends a paragraph. */
static int is_ending(Line name)
{
    static const char *const ending[] = {
        "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col",
        "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
        "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe",
        "legend", "li", "link", "main", "menu", "menuitem", "meta", "nav", "noframes", "ol", "optgroup", "option", "p",
        "param", "search", "section", "source", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title",
        "tr", "track", "ul", NULL};
    return is_one_of(name, ending);
}

/* Return what is left behind an attribute with the spaces before it; nothing is left if there is none. */
static Line behind_attribute(Line line)
{
    Py_ssize_t spaces = run_of(line, ' '), end = spaces;
    while (end < line.size && (is_small(line.text[end]) || line.text[end] == '-'))
        end++;
    if (!spaces || end == spaces || !begins_with(from(line, end), "=\""))
        return (Line){line.text, 0};
    Line value = from(line, end + 2);
    const char *close = value.size ? memchr(value.text, '"', (size_t)value.size) : NULL;
    return close == NULL ? (Line){line.text, 0} : from(value, close - value.text + 1);
}

/* Tell whether a line begins with a tag of text that has visible letters behind it, or with an address. */
static int is_text_tag(Line line)
{
    static const char *const of_text[] = {"a", "b", "code", "em", "i", "img", "kbd", "span", "strong", NULL};
    if (begins_with(line, "<http://") || begins_with(line, "<https://"))
        return 1;
    Py_ssize_t end = 1;
    while (end < line.size && is_small(line.text[end]))
        end++;
    if (line.text[0] != '<' || !is_one_of((Line){line.text + 1, end - 1}, of_text))
        return 0;
    Line rest = from(line, end), next;
    while ((next = behind_attribute(rest)).size)
        rest = next;
    rest = from(rest, run_of(rest, ' '));
    rest = from(rest, rest.size && rest.text[0] == '/');
    if (!rest.size || rest.text[0] != '>')
        return 0;
    for (Py_ssize_t i = 1; i < rest.size; i++)
        if (rest.text[i] > ' ' && rest.text[i] < 0x7f)
            return 1;
    return 0;
}

/* Tell whether a line begins what may define a link, whose label may go on in the next line. */
static int may_define(Line line)
{
    if (!line.size || line.text[0] != '[')
        return 0;
    for (Py_ssize_t i = 1; i + 1 < line.size; i++)
        if (line.text[i] == ']' && line.text[i + 1] == ':')
            return 1;
    for (Py_ssize_t i = 1; i < line.size; i++) {
        if (line.text[i] == ']')
            return 0;
        i += line.text[i] == '\\';
    }
    return 1;
}

static int is_of_address(char letter)
{
    return is_letter(letter) || is_digit(letter) || (letter != '\0' && strchr("_./#?&=%+~,@!$*:-", letter) != NULL);
}

/* Return where the label of a link ends that is certainly one, or 0. */
static Py_ssize_t label(Line line)
{
    Py_ssize_t i = 1;
    int is_visible = 0;
    for (; i < line.size && line.text[i] != ']'; i++) {
        if (line.text[i] == '[' || line.text[i] == '\\' || line.text[i] == '|')
            return 0;
        is_visible = is_visible || (line.text[i] > ' ' && line.text[i] < 0x7f);
    }
    return is_visible && begins_with(from(line, i), "]:") ? i + 2 : 0;
}

/* Tell whether a line certainly defines a link. */
static int defines(Line line)
{
    Py_ssize_t end = label(line), before = end ? spaces_before(from(line, end)) : 0;
    if (!before)
        return 0;
    Line address = bare_end(from(line, end + before));
    Py_ssize_t scheme = begins_with(address, "http://") ? 7 : begins_with(address, "https://") ? 8 : 0;
    if (address.size <= scheme || (!scheme && has(address, ':')))
        return 0;
    for (Py_ssize_t i = scheme; i < address.size; i++)
        if (!is_of_address(address.text[i]))
            return 0;
    return 1;
}

static int is_definition(File *file, Py_ssize_t start)
{
    if (!defines(line_at(file, start)))
        return 0;
    if (start + 1 == file->end)
        return 1;
    Line next = line_at(file, start + 1);
    next = from(next, spaces_before(next));
    int is_title = next.text[0] == '"' || next.text[0] == '\'' || next.text[0] == '(';
    return !is_title && !file->is_unreadable;
}

/* -- blocks --------------------------------------------------------------------------------------------------- */

/* Tell whether a line is text for certain, and begins nothing else. */
static int is_text(Line line)
{
    if (is_space(line.text[0])) {
        line = from(line, spaces_before(line));
        if (line.text[0] != '\0' && strchr("<>#|`~[=-+*_:", line.text[0]) != NULL)
            return 0;
    }
    char first = line.text[0];
    int is_marked = first == '<' || (first >= 0 && first < ' ') || first == 0x7f || first == '#' || first == '|' ||
                    begins_with(line, "```") || begins_with(line, "~~~");
    return !((is_marked && !is_text_tag(line)) || is_like_item(line) || is_drawn(line));
}

static int is_comment(Line line)
{
    return begins_with(line, "<!--");
}

static Py_ssize_t comment(File *file, Py_ssize_t start)
{
    for (Py_ssize_t number = start; number < file->end; number++) {
        Line line = line_at(file, number);
        for (Py_ssize_t i = 0; i + 3 <= line.size; i++)
            if (!memcmp(line.text + i, "-->", 3))
                return number + 1;
    }
    return UNCERTAIN;
}

static Py_ssize_t fenced(File *file, Py_ssize_t start, char letter, Py_ssize_t length)
{
    for (Py_ssize_t number = start + 1; number < file->end; number++)
        if (closes(line_at(file, number), letter, length))
            return number + 1;
    return UNCERTAIN;
}

static Py_ssize_t code(File *file, Py_ssize_t start)
{
    Py_ssize_t last = start + 1;
    for (Py_ssize_t number = start + 1; number < file->end; number++) {
        Line line = line_at(file, number);
        if (is_blank(line))
            continue;
        if (indent(line) < TAB_COLUMNS)
            break;
        last = number + 1;
    }
    return last;
}

/* Return a place if a blank line or nothing is there: else what stands before may go on. */
static Py_ssize_t if_blank(File *file, Py_ssize_t number)
{
    return number < file->end && !is_blank(line_at(file, number)) ? UNCERTAIN : number;
}

static int is_table_head(Line line)
{
    Line bare = bare_end(line);
    return bare.size >= 2 && bare.text[bare.size - 1] == '|' && !has(bare, '\\') && !is_drawn(line);
}

static int is_table_rule(Line line)
{
    line = bare_end(line);
    if (line.size < 2 || line.text[0] != '|')
        return 0;
    for (line = from(line, 1); line.size;) {
        line = from(line, spaces_before(line));
        line = from(line, line.size && line.text[0] == ':');
        Py_ssize_t drawn = run_of(line, '-');
        line = from(line, drawn);
        line = from(line, line.size && line.text[0] == ':');
        line = from(line, spaces_before(line));
        if (!drawn || !line.size || line.text[0] != '|')
            return 0;
        line = from(line, 1);
    }
    return 1;
}

static Py_ssize_t table(File *file, Py_ssize_t start)
{
    Line head = line_at(file, start), rule = start + 1 < file->end ? line_at(file, start + 1) : (Line){"", 0};
    Py_ssize_t bars = count_of(rule, '|'), last = start + 2;
    if (!is_table_head(head) || !is_table_rule(rule) || count_of(head, '|') != bars)
        return UNCERTAIN;
    while (last < file->end && begins_with(line_at(file, last), "|"))
        last++;
    Py_ssize_t missing = 0; /* at most, from rows with fewer cells than the head */
    for (Py_ssize_t row = start + 2; row < last && missing <= MOST_CELLS; row++) {
        Line line = line_at(file, row);
        Py_ssize_t own = count_of(line, '|');
        for (Py_ssize_t i = 1; i < line.size; i++)
            own -= line.text[i] == '|' && line.text[i - 1] == '\\';
        missing += own < bars ? bars - own : 0;
    }
    return missing > MOST_CELLS ? UNCERTAIN : if_blank(file, last);
}

static Py_ssize_t quote(File *file, Py_ssize_t start)
{
    Py_ssize_t last = start;
    for (Line line; last < file->end && begins_with(line = line_at(file, last), ">"); last++)
        if (is_deep(line))
            return UNCERTAIN;
    Line line = bare_end(line_at(file, last - 1));
    return !line.size || line.text[line.size - 1] == '>' ? UNCERTAIN : if_blank(file, last);
}

/* Return where a list ends: it goes on with items of its kind and with whatever is indented below them. */
static Py_ssize_t list(File *file, Py_ssize_t start, Item first)
{
    Line line = line_at(file, start);
    Py_ssize_t inside = first.inside;
    int is_behind_blank = 0;
    if (is_drawn(line) || is_deep(line))
        return UNCERTAIN;
    for (Py_ssize_t number = start + 1; number < file->end; number++) {
        Item item;
        line = line_at(file, number);
        if (is_blank(line)) {
            is_behind_blank = 1;
            continue;
        }
        if (is_deep(line))
            return UNCERTAIN;
        if (is_space(line.text[0])) {
            if (indent(line) < inside)
                return UNCERTAIN;
        } else if (is_item(line, &item)) {
            if (is_drawn(line))
                return UNCERTAIN;
            if (item.kind != first.kind)
                return number;
            inside = item.inside;
        } else if (is_behind_blank || heading(line) || fence(line))
            return number;
        else /* it may go on with what the item says */
            return UNCERTAIN;
        is_behind_blank = 0;
    }
    return file->end;
}

static Block ending(Py_ssize_t start, Py_ssize_t end)
{
    return (Block){start, end, 0, 0};
}

/* Return a paragraph: it ends at a blank line, or where something begins that needs none before it. Or a heading, if
   there is a line drawn under it. */
static Block paragraph(File *file, Py_ssize_t start)
{
    Line line = line_at(file, start), name;
    if (!begins_text(line.text[0]) && (!is_text(line) || may_define(line)))
        return ending(start, UNCERTAIN);
    for (Py_ssize_t number = start + 1; number < file->end; number++) {
        Item item;
        Line before = line;
        line = line_at(file, number);
        if (is_blank(line))
            return ending(start, number);
        char first = line.text[0];
        if (begins_text(first) || (is_space(first) && indent(line) >= TAB_COLUMNS))
            continue; /* code needs a blank line before it, and nothing else begins with a letter */
        if (is_rule_of(line, '=', 1) || is_rule_of(line, '-', 2)) {
            int is_table = number - 1 > start && has(before, '|'); /* the head of one */
            return (Block){start, is_table ? UNCERTAIN : number + 1, first == '=' ? 1 : 2, 0};
        }
        if (heading(line) || fence(line) || first == '>' || is_comment(line))
            return ending(start, number);
        if (first == '|')
            return ending(start, table(file, number) == UNCERTAIN ? UNCERTAIN : number);
        if (is_item(line, &item)) {
            int is_first = item.number == NULL || (item.digits == 1 && item.number[0] == '1');
            return ending(start, is_drawn(line) || !is_first ? UNCERTAIN : number);
        }
        if ((!is_tag(line, &name) || is_ending(name)) && !is_text(line))
            return ending(start, UNCERTAIN);
    }
    return ending(start, file->end);
}

/* Return the block that begins at a line, which is not blank. */
static Block block(File *file, Py_ssize_t start)
{
    Line line = line_at(file, start), name;
    Item item;
    char first = line.text[0];
    if (first != '|' && has(line, '|') && start + 1 < file->end && is_drawn(line_at(file, start + 1)))
        return ending(start, UNCERTAIN); /* whatever else it may be, a table comes first */
    if (first == '#') {
        int level = heading(line);
        return (Block){start, level ? start + 1 : UNCERTAIN, level, 0};
    }
    if (begins_text(first))
        return paragraph(file, start);
    if (fence(line))
        return (Block){start, fenced(file, start, first, fence(line)), 0, 1};
    if (first == '|')
        return (Block){start, table(file, start), 0, 1};
    if (is_comment(line))
        return ending(start, comment(file, start));
    if (is_space(first) && indent(line) >= TAB_COLUMNS)
        return (Block){start, code(file, start), 0, 1};
    if (is_tag(line, &name)) {
        Py_ssize_t last = start + 1;
        while (last < file->end && !is_blank(line_at(file, last)))
            last++;
        return ending(start, last);
    }
    if (is_rule(line))
        return ending(start, start + 1);
    if (first == '>')
        return ending(start, quote(file, start));
    return is_item(line, &item) ? ending(start, list(file, start, item)) : paragraph(file, start);
}

/* -- the blocks of a file ------------------------------------------------------------------------------------- */

/* Return what a heading says, one space between its words: the letters behind its signs, or all above what is drawn. */
static PyObject *title(File *file, const Block *block)
{
    PyObject *space = PyUnicode_FromStringAndSize(" ", 1), *said = NULL, *words = NULL, *made = NULL;
    Line line = line_at(file, block->start);
    if (line.text[0] == '#') {
        PyObject *whole = PyTuple_GetItem(file->lines, block->start);
        Py_ssize_t behind = line.size - bare_end(line).size;
        said = PyUnicode_Substring(whole, block->level, PyUnicode_GetLength(whole) - behind);
    } else if (space != NULL) {
        PyObject *above = PyTuple_GetSlice(file->lines, block->start, block->end - 1);
        said = above == NULL ? NULL : PyUnicode_Join(space, above);
        Py_XDECREF(above);
    }
    if (said != NULL)
        words = PyUnicode_Split(said, NULL, -1);
    if (words != NULL && space != NULL)
        made = PyUnicode_Join(space, words);
    Py_XDECREF(said);
    Py_XDECREF(words);
    Py_XDECREF(space);
    return made;
}

/* Put a block at the end of the list; returns -1 with an exception set if that cannot be done. */
static int told(PyObject *blocks, File *file, const Block *block)
{
    PyObject *says = block->level ? title(file, block) : PyUnicode_FromStringAndSize("", 0);
    if (says == NULL)
        return -1;
    PyObject *one = Py_BuildValue("nniNO", block->start, block->end, block->level, says,
                                  block->is_whole ? Py_True : Py_False);
    int state = one == NULL ? -1 : PyList_Append(blocks, one);
    Py_XDECREF(one);
    return state;
}

/* Tell the blocks from a line on; return where it takes the parser, or where the lines end. -2 with an exception.

   What comes before it may go on with it: a list, for instance, with an item that only the parser knows for one. */
static Py_ssize_t all_told(File *file, Py_ssize_t start, PyObject *blocks)
{
    Block last = ending(start, UNCERTAIN); /* none yet */
    while (start < file->end) {
        Line line = line_at(file, start);
        int is_none = is_blank(line) || (line.text[0] == '[' && is_definition(file, start));
        Block next = is_none ? ending(start, start + 1) : block(file, start);
        if (file->is_unreadable || next.end == UNCERTAIN)
            return PyErr_Occurred() ? -2 : last.end == UNCERTAIN ? start : last.start;
        start = next.end;
        if (is_none)
            continue;
        if (last.end != UNCERTAIN && told(blocks, file, &last) < 0)
            return -2;
        last = next;
    }
    return last.end != UNCERTAIN && told(blocks, file, &last) < 0 ? -2 : PyTuple_Size(file->lines);
}

/* blocks(lines, start): the blocks of a file from a line on (start, end, level, title, whether it stays whole), and the
   line from which on it takes the parser, or the end. */
PyObject *kernel_blocks(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !PyTuple_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "blocks takes 2 arguments, the first a tuple of lines");
    Py_ssize_t start = PyNumber_AsSsize_t(arguments[1], PyExc_OverflowError), lines = PyTuple_Size(arguments[0]);
    if (start < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "no line comes before the first");
        return NULL;
    }
    File file = {arguments[0], lines, 0};
    if (lines > start && is_blank(line_at(&file, lines - 1)))
        file.end--; /* behind the last line feed there is no line */
    if (file.is_unreadable)
        return PyErr_Occurred() ? NULL : Py_BuildValue("[]n", start);
    PyObject *blocks = PyList_New(0);
    Py_ssize_t place = blocks == NULL ? -2 : all_told(&file, start, blocks);
    if (place == -2) {
        Py_XDECREF(blocks);
        return NULL;
    }
    return Py_BuildValue("Nn", blocks, place);
}
