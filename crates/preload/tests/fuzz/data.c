/* Numbers, kinds of elements, how they lie in memory, and operations on them. */
#include "fuzz.h"

#include <complex.h>
#include <stdbool.h>

uint64_t hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t parts[] = {a, b, c, d}, state = 0x9e3779b97f4a7c15;
    for (int i = 0; i < 4; i++) {
        state = (state ^ parts[i]) * 0xff51afd7ed558ccd;
        state ^= state >> 32;
        state *= 0xc4ceb9fe1a85ec53;
        state ^= state >> 29;
    }
    return state;
}

typedef struct {
    int32_t a;
    double b;
    char c;
} Structure;

static Kind kinds[40];
static int kind_count;

static void kind(const char *name, Class class, int size, int first, MPI_Datatype type) {
    kinds[kind_count++] = (Kind){name, class, size, first, type};
}

void kinds_made(void) {
    kind("char", BYTES, 1, 0, MPI_CHAR);
    kind("byte", BYTES, 1, 0, MPI_BYTE);
    kind("schar", SIGNED, 1, 0, MPI_SIGNED_CHAR);
    kind("uchar", UNSIGNED, 1, 0, MPI_UNSIGNED_CHAR);
    kind("short", SIGNED, 2, 0, MPI_SHORT);
    kind("ushort", UNSIGNED, 2, 0, MPI_UNSIGNED_SHORT);
    kind("int", SIGNED, 4, 0, MPI_INT);
    kind("unsigned", UNSIGNED, 4, 0, MPI_UNSIGNED);
    kind("long", SIGNED, 8, 0, MPI_LONG);
    kind("ulong", UNSIGNED, 8, 0, MPI_UNSIGNED_LONG);
    kind("longlong", SIGNED, 8, 0, MPI_LONG_LONG);
    kind("int8", SIGNED, 1, 0, MPI_INT8_T);
    kind("uint16", UNSIGNED, 2, 0, MPI_UINT16_T);
    kind("int32", SIGNED, 4, 0, MPI_INT32_T);
    kind("int64", SIGNED, 8, 0, MPI_INT64_T);
    kind("uint64", UNSIGNED, 8, 0, MPI_UINT64_T);
    kind("float", FLOATING, 4, 0, MPI_FLOAT);
    kind("double", FLOATING, 8, 0, MPI_DOUBLE);
    kind("longdouble", FLOATING, sizeof(long double), 0, MPI_LONG_DOUBLE);
    kind("floatcomplex", COMPLEX, 8, 4, MPI_C_FLOAT_COMPLEX);
    kind("doublecomplex", COMPLEX, 16, 8, MPI_C_DOUBLE_COMPLEX);
    kind("bool", LOGICAL, 1, 0, MPI_C_BOOL);
    kind("intint", PAIR, 8, 4, MPI_2INT);
    kind("doubleint", PAIR, 16, 8, MPI_DOUBLE_INT);
    kind("longint", PAIR, 16, 8, MPI_LONG_INT);
    MPI_Datatype type, resized;
    MPI_Type_contiguous(2, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    kind("affine", AFFINE, 8, 4, type);
    Structure s;
    int lengths[] = {1, 1, 1};
    MPI_Aint places[] = {(char *)&s.a - (char *)&s, (char *)&s.b - (char *)&s, (char *)&s.c - (char *)&s};
    MPI_Datatype types[] = {MPI_INT32_T, MPI_DOUBLE, MPI_CHAR};
    MPI_Type_create_struct(3, lengths, places, types, &type);
    MPI_Type_create_resized(type, 0, sizeof s, &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&type);
    kind("structure", STRUCTURE, sizeof s, 0, resized);
}

void kinds_freed(void) {
    for (int i = 0; i < kind_count; i++)
        if (kinds[i].class == AFFINE || kinds[i].class == STRUCTURE) MPI_Type_free(&kinds[i].type);
}

const Kind *kind_named(const char *name) {
    for (int i = 0; i < kind_count; i++)
        if (!strcmp(kinds[i].name, name)) return &kinds[i];
    return &kinds[6];
}

Layout layout_made(const Actor *actor, const Kind *kind, int which) {
    Layout layout = {.elements = 1, .extent = 1, .type = kind->type, .kind = kind, .name = "plain"};
    MPI_Datatype type;
    int lengths[] = {1, 2}, places[] = {0, 2};
    switch (which % FORMS_OF_LAYOUT) {
    case 1: /* x. */
        OK(MPI_Type_create_resized(kind->type, 0, 2 * kind->size, &layout.type));
        layout.name = "resized", layout.extent = 2, layout.mine = 1;
        break;
    case 2: /* xx */
        OK(MPI_Type_contiguous(2, kind->type, &layout.type));
        layout.name = "contiguous", layout.elements = 2, layout.extent = 2, layout.mine = 1;
        layout.at[1] = 1;
        break;
    case 3: /* x.x */
        OK(MPI_Type_vector(2, 1, 2, kind->type, &layout.type));
        layout.name = "vector", layout.elements = 2, layout.extent = 3, layout.mine = 1;
        layout.at[1] = 2;
        break;
    case 4: /* x.xx */
        OK(MPI_Type_indexed(2, lengths, places, kind->type, &layout.type));
        layout.name = "indexed", layout.elements = 3, layout.extent = 4, layout.mine = 1;
        layout.at[1] = 2, layout.at[2] = 3;
        break;
    case 5: /* xx.xx..xx. of which the second pair comes first */
        lengths[0] = 2;
        places[0] = 3, places[1] = 0;
        OK(MPI_Type_indexed(2, lengths, places, kind->type, &type));
        OK(MPI_Type_create_resized(type, 0, 6 * kind->size, &layout.type));
        OK(MPI_Type_free(&type));
        layout.name = "backwards", layout.elements = 4, layout.extent = 6, layout.mine = 1;
        layout.at[0] = 3, layout.at[1] = 4, layout.at[2] = 0, layout.at[3] = 1;
        break;
    }
    if (layout.mine) OK(MPI_Type_commit(&layout.type));
    return layout;
}

Layout layout_drawn(const Actor *actor, const Kind *kind, long count, uint64_t draw) {
    static const int elements[FORMS_OF_LAYOUT] = {1, 1, 2, 2, 3, 4};
    int which = draw % 3 ? 0 : draw / 3 % FORMS_OF_LAYOUT;
    return layout_made(actor, kind, count % elements[which] ? 0 : which);
}

void layout_freed(Layout *layout) {
    if (layout->mine) MPI_Type_free(&layout->type);
    layout->mine = 0;
}

size_t layout_bytes(const Layout *layout, long elements) {
    return (size_t)(elements / layout->elements) * layout->extent * layout->kind->size;
}

char *element_at(const Layout *layout, char *start, long index) {
    long whole = index / layout->elements;
    return start + (whole * layout->extent + layout->at[index % layout->elements]) * layout->kind->size;
}

static void store_number(int floating, int size, char *to, int64_t x) {
    float f = x;
    double d = x;
    long double l = x;
    if (!floating) memcpy(to, &x, size); /* little-endian */
    else if (size == 4) memcpy(to, &f, 4);
    else if (size == 8) memcpy(to, &d, 8);
    else memcpy(to, &l, 10);
}

void store(const Kind *kind, char *to, Element e) {
    Structure s;
    switch (kind->class) {
    case SIGNED:
    case UNSIGNED:
    case LOGICAL:
    case BYTES: store_number(0, kind->size, to, e.x); break;
    case FLOATING: store_number(1, kind->size, to, e.x); break;
    case COMPLEX:
        store_number(1, kind->first, to, e.x);
        store_number(1, kind->first, to + kind->first, e.y);
        break;
    case PAIR:
        store_number(!strcmp(kind->name, "doubleint"), kind->first, to, e.x);
        store_number(0, 4, to + kind->first, e.y);
        break;
    case AFFINE:
        store_number(0, 4, to, e.x);
        store_number(0, 4, to + 4, e.y);
        break;
    case STRUCTURE:
        s.a = e.x, s.b = e.y, s.c = e.x ^ e.y;
        memcpy(to + offsetof(Structure, a), &s.a, sizeof s.a);
        memcpy(to + offsetof(Structure, b), &s.b, sizeof s.b);
        memcpy(to + offsetof(Structure, c), &s.c, sizeof s.c);
        break;
    }
}

Element moved(const Kind *kind, uint64_t draw) {
    Element e = {draw & 0xffffff, draw >> 24 & 0xffffff};
    if (kind->class == LOGICAL) e.x &= 1;
    return e;
}

static void blank(const Kind *kind, char *at) {
    Structure whole;
    if (!strcmp(kind->name, "longdouble")) memset(at + 10, UNTOUCHED, kind->size - 10);
    if (kind->class == PAIR) memset(at + kind->first + 4, UNTOUCHED, kind->size - kind->first - 4);
    if (kind->class != STRUCTURE) return;
    memcpy(&whole, at, sizeof whole);
    memset(at, UNTOUCHED, sizeof whole);
    memcpy(at + offsetof(Structure, a), &whole.a, sizeof whole.a);
    memcpy(at + offsetof(Structure, b), &whole.b, sizeof whole.b);
    memcpy(at + offsetof(Structure, c), &whole.c, sizeof whole.c);
}

void blanked(const Layout *layout, char *start, long elements) {
    const Kind *kind = layout->kind;
    if (kind->class != PAIR && kind->class != STRUCTURE && strcmp(kind->name, "longdouble")) return;
    for (long i = 0; i < elements; i++) blank(kind, element_at(layout, start, i));
}

void compared(const Actor *actor, const Kind *kind, const char *what, const char *want, const char *got, size_t bytes) {
    if (!memcmp(want, got, bytes)) return;
    size_t at = 0, others = 0;
    while (want[at] == got[at]) at++;
    for (size_t i = at; i < bytes; i++) others += want[i] != got[i];
    size_t first = at / kind->size * kind->size;
    char words[2][3 * 16 + 1] = {"", ""};
    for (int i = 0; i < kind->size && i < 16 && first + i < bytes; i++) {
        sprintf(words[0] + 3 * i, " %02x", (unsigned char)want[first + i]);
        sprintf(words[1] + 3 * i, " %02x", (unsigned char)got[first + i]);
    }
    wrong(actor, "%s: %zu of %zu bytes differ, first at byte %zu, in%s %s expected, found%s", what, others, bytes, at, words[0], kind->name,
        words[1]);
}

/* ---- operations ---- */

static const struct {
    const char *name;
} operation_names[OPERATIONS] = {{"sum"}, {"prod"}, {"max"}, {"min"}, {"band"}, {"bor"}, {"bxor"}, {"land"}, {"lor"}, {"lxor"}, {"minloc"},
    {"maxloc"}, {"modular"}, {"composed"}};

Operation operation_named(const char *name) {
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operation_names[i].name, name)) return i;
    return SUM;
}

int operation_suits(Operation operation, const Kind *kind) {
    int integer = kind->class == SIGNED || kind->class == UNSIGNED;
    switch (operation) {
    case SUM: return integer || kind->class == FLOATING || kind->class == COMPLEX;
    case PROD:
    case MAX:
    case MIN: return integer || kind->class == FLOATING;
    case BAND:
    case BOR:
    case BXOR: return integer || !strcmp(kind->name, "byte");
    case LAND:
    case LOR:
    case LXOR: return integer || kind->class == LOGICAL;
    case MINLOC:
    case MAXLOC: return kind->class == PAIR;
    case MODULAR: return !strcmp(kind->name, "int64");
    case COMPOSED: return kind->class == AFFINE;
    default: return 0;
    }
}

enum { MODULUS = 1000003 };

/* The same on 64 bits: addition modulo a prime. */
static void modular(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint low, extent;
    MPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *length; i++) {
        int64_t a, b;
        memcpy(&a, (char *)in + i * extent, sizeof a);
        memcpy(&b, (char *)inout + i * extent, sizeof b);
        b = (a + b) % MODULUS;
        memcpy((char *)inout + i * extent, &b, sizeof b);
    }
}

static Element composition(Element first, Element second) {
    uint32_t a = first.x, b = first.y, c = second.x, d = second.y;
    return (Element){(uint32_t)(a * c), (uint32_t)(a * d + b)};
}

/* x -> a x + b after x -> c x + d, modulo 2^32: associative, and does not commute. */
static void composed(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint low, extent;
    MPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *length; i++) {
        uint32_t f[2], g[2];
        memcpy(f, (char *)in + i * extent, sizeof f);
        memcpy(g, (char *)inout + i * extent, sizeof g);
        Element e = composition((Element){f[0], f[1]}, (Element){g[0], g[1]});
        g[0] = e.x, g[1] = e.y;
        memcpy((char *)inout + i * extent, g, sizeof g);
    }
}

MPI_Op operation_made(const Actor *actor, Operation operation, int *mine) {
    MPI_Op made;
    *mine = operation == MODULAR || operation == COMPOSED;
    switch (operation) {
    case SUM: return MPI_SUM;
    case PROD: return MPI_PROD;
    case MAX: return MPI_MAX;
    case MIN: return MPI_MIN;
    case BAND: return MPI_BAND;
    case BOR: return MPI_BOR;
    case BXOR: return MPI_BXOR;
    case LAND: return MPI_LAND;
    case LOR: return MPI_LOR;
    case LXOR: return MPI_LXOR;
    case MINLOC: return MPI_MINLOC;
    case MAXLOC: return MPI_MAXLOC;
    default: OK(MPI_Op_create(operation == MODULAR ? modular : composed, operation == MODULAR, &made)); return made;
    }
}

/* What a rank gives: small enough for five of them to stay exact in every type. */
Element reduced_from(Operation operation, uint64_t draw, int rank) {
    switch (operation) {
    case SUM: return (Element){draw % 16, 2 * (draw % 16)};
    case PROD: return (Element){1 + draw % 2, 0};
    case LAND:
    case LOR:
    case LXOR: return (Element){draw % 2, 0};
    case MINLOC:
    case MAXLOC: return (Element){draw % 4, rank};
    case MODULAR: return (Element){draw % MODULUS, 0};
    case COMPOSED: return (Element){(uint32_t)draw, (uint32_t)(draw >> 32)};
    default: return (Element){draw % 128, 0};
    }
}

Element combined(Operation operation, Element a, Element b) {
    switch (operation) {
    case SUM: return (Element){a.x + b.x, a.y + b.y};
    case PROD: return (Element){a.x * b.x, 0};
    case MAX: return a.x > b.x ? a : b;
    case MIN: return a.x < b.x ? a : b;
    case BAND: return (Element){a.x & b.x, 0};
    case BOR: return (Element){a.x | b.x, 0};
    case BXOR: return (Element){a.x ^ b.x, 0};
    case LAND: return (Element){a.x && b.x, 0};
    case LOR: return (Element){a.x || b.x, 0};
    case LXOR: return (Element){!a.x != !b.x, 0};
    case MINLOC: return a.x < b.x || (a.x == b.x && a.y < b.y) ? a : b;
    case MAXLOC: return a.x > b.x || (a.x == b.x && a.y < b.y) ? a : b;
    case MODULAR: return (Element){(a.x + b.x) % MODULUS, 0};
    default: return composition(a, b);
    }
}
