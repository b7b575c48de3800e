/* Reductions of every kind of element by every operation, compared with a loop over ranks. */
#ifndef REDUCTIONS_H
#define REDUCTIONS_H

#include "check.h"
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of one datatype, and an operation on them. */
typedef struct {
    const char *name;
    MPI_Datatype type;
    MPI_Op op;
    long extent;             /* from one element to the next */
    long lower, reach;       /* where an element's data begin, and how far they go */
    int most;                /* more elements than this would overlap; 0: none do */
    void (*give)(int rank, int index, void *element);       /* writes data, and no gaps */
    void (*combine)(const void *left, void *right);         /* right = left op right */
    void (*put)(const void *from, void *to);                /* copies data, and no gaps */
    bool (*same)(const void *one, const void *other);       /* NULL: the same bytes, gaps untouched */
} kind;

/* A user's operation finds here what it works on: threads have operations of their own. */
static _Thread_local const kind *current;

static void user(void *left, void *right, int *count, MPI_Datatype *type) {
    CHECK(*type == current->type, "%s: the operation got another datatype", current->name);
    for (int i = 0; i < *count; i++)
        current->combine((char *)left + i * current->extent, (char *)right + i * current->extent);
}

/* Memory for so many elements, and the address of the first. */
typedef struct {
    char *memory, *at;
    size_t bytes;
} room;

static room room_for(const kind *k, int count) {
    size_t bytes = (size_t)(count * labs(k->extent) + k->reach + labs(k->lower));
    char *memory = filled(bytes + 64);
    return (room){memory, memory + (k->lower < 0 ? -k->lower : 0), bytes};
}

static void give(const kind *k, int rank, int first, int count, char *at) {
    for (int i = 0; i < count; i++) k->give(rank, first + i, at + i * k->extent);
}

/* Element `index` of all ranks' together. */
static void expected(const kind *k, int ranks, int index, void *to) {
    room left = room_for(k, 1), right = room_for(k, 1);
    k->give(ranks - 1, index, right.at);
    for (int rank = ranks - 2; rank >= 0; rank--) {
        k->give(rank, index, left.at);
        k->combine(left.at, right.at);
    }
    k->put(right.at, to);
    free(left.memory);
    free(right.memory);
}

static void compare(const kind *k, const char *function, int ranks, int first, int count, room got, int beyond) {
    room want = room_for(k, count + beyond);
    for (int i = 0; i < count; i++) expected(k, ranks, first + i, want.at + i * k->extent);
    bool right = true;
    if (k->same)
        for (int i = 0; i < count; i++) right &= k->same(want.at + i * k->extent, got.at + i * k->extent);
    else if (beyond == 0)
        right = memcmp(want.memory, got.memory, want.bytes) == 0;
    else {
        /* Behind the result is what is left of the input. */
        room data = room_for(k, count + beyond);
        for (int i = 0; i < count; i++) k->put(got.at + i * k->extent, data.at + i * k->extent);
        right = memcmp(want.memory, data.memory, want.bytes) == 0;
        free(data.memory);
    }
    CHECK(right, "%s of %d %s on %d ranks", function, count, k->name, ranks);
    free(want.memory);
}

/* Every reduction that there is, on one communicator. */
static void reduce_all(const kind *k, int count, MPI_Comm comm) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    if (k->type == MPI_DATATYPE_NULL || (k->most && count > k->most)) return;
    current = k;
    int root = count % n;
    room in = room_for(k, count), out = room_for(k, count);
    give(k, me, 0, count, in.at);
    MPI_Allreduce(in.at, out.at, count, k->type, k->op, comm);
    compare(k, "Allreduce", n, 0, count, out, 0);
    MPI_Allreduce(MPI_IN_PLACE, in.at, count, k->type, k->op, comm);
    compare(k, "Allreduce in place", n, 0, count, in, 0);
    give(k, me, 0, count, in.at);
    free(out.memory);
    out = room_for(k, count);
    MPI_Reduce(in.at, me == root ? out.at : NULL, count, k->type, k->op, root, comm);
    if (me == root) compare(k, "Reduce", n, 0, count, out, 0);
    MPI_Reduce(me == root ? MPI_IN_PLACE : in.at, me == root ? in.at : NULL, count, k->type, k->op, root, comm);
    if (me == root) compare(k, "Reduce in place", n, 0, count, in, 0);
    free(in.memory);
    free(out.memory);

    int counts[64], all = 0, before = 0;
    if (k->most && (count + 1) * n > k->most) return;
    for (int rank = 0; rank < n; rank++) {
        counts[rank] = rank % 2 ? count + 1 : count;
        if (rank == me) before = all;
        all += counts[rank];
    }
    in = room_for(k, all), out = room_for(k, counts[me]);
    give(k, me, 0, all, in.at);
    MPI_Reduce_scatter(in.at, out.at, counts, k->type, k->op, comm);
    compare(k, "Reduce_scatter", n, before, counts[me], out, 0);
    MPI_Reduce_scatter(MPI_IN_PLACE, in.at, counts, k->type, k->op, comm);
    compare(k, "Reduce_scatter in place", n, before, counts[me], in, all - counts[me]);
    free(out.memory);
    out = room_for(k, count);
    give(k, me, 0, count * n, in.at);
    MPI_Reduce_scatter_block(in.at, out.at, count, k->type, k->op, comm);
    compare(k, "Reduce_scatter_block", n, me * count, count, out, 0);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in.at, count, k->type, k->op, comm);
    compare(k, "Reduce_scatter_block in place", n, me * count, count, in, all - count);
    free(in.memory);
    free(out.memory);
}

/* ---- predefined types ---- */

#define COMBINE(T, NAME, EXPRESSION)                                                               \
    static void T##_##NAME(const void *left, void *right) {                                        \
        const T a = *(const T *)left, b = *(T *)right;                                             \
        *(T *)right = (T)(EXPRESSION);                                                             \
    }

#define PLACED(T)                                                                                  \
    static void T##_put(const void *from, void *to) { *(T *)to = *(const T *)from; }

#define WHOLE(T)                                                                                   \
    PLACED(T)                                                                                      \
    static void T##_give(int rank, int index, void *to) { *(T *)to = (T)(1 + (rank + index) % 2); } \
    COMBINE(T, sum, a + b) COMBINE(T, prod, a * b) COMBINE(T, min, a < b ? a : b)                  \
    COMBINE(T, max, a > b ? a : b) COMBINE(T, land, a && b) COMBINE(T, lor, a || b)                \
    COMBINE(T, lxor, !a != !b) COMBINE(T, band, a & b) COMBINE(T, bor, a | b) COMBINE(T, bxor, a ^ b)

#define REAL(T, ROUNDING)                                                                          \
    PLACED(T)                                                                                      \
    static void T##_give(int rank, int index, void *to) {                                          \
        *(T *)to = (T)1.3 + (T)(index % 7) / 3 - (T)(rank * 5 % 3) / 9;                            \
    }                                                                                              \
    static bool T##_same(const void *one, const void *other) {                                     \
        const T a = *(const T *)one, b = *(const T *)other;                                        \
        return fabsl((long double)(a - b)) <= ROUNDING * fabsl((long double)a);                    \
    }                                                                                              \
    COMBINE(T, sum, a + b) COMBINE(T, prod, a * b) COMBINE(T, min, a < b ? a : b)                  \
    COMBINE(T, max, a > b ? a : b)

#define COMPLEX(T, ROUNDING)                                                                       \
    PLACED(T)                                                                                      \
    static void T##_give(int rank, int index, void *to) { *(T *)to = (T)(1 + index % 5 + (rank - 0.5) * I); } \
    static bool T##_same(const void *one, const void *other) {                                     \
        const T a = *(const T *)one, b = *(const T *)other;                                        \
        return cabsl((long double complex)(a - b)) <= ROUNDING * cabsl((long double complex)a);    \
    }                                                                                              \
    COMBINE(T, sum, a + b) COMBINE(T, prod, a * b)

#define PAIR(NAME, V)                                                                              \
    typedef struct { V value; int index; } NAME;                                                   \
    PLACED(NAME)                                                                                   \
    static void NAME##_give(int rank, int index, void *to) {                                       \
        *(NAME *)to = (NAME){(V)((rank * 3 + index) % 4), rank};                                   \
    }                                                                                              \
    static bool NAME##_same(const void *one, const void *other) {                                  \
        const NAME *a = one, *b = other;                                                           \
        return a->value == b->value && a->index == b->index;                                       \
    }                                                                                              \
    COMBINE(NAME, minloc, b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a)  \
    COMBINE(NAME, maxloc, b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a)

typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort_;
typedef unsigned long ulong_;
typedef long long llong;
typedef unsigned long long ullong;
typedef long double ldouble;
typedef float complex fcomplex;
typedef double complex dcomplex;
typedef long double complex lcomplex;
typedef bool truth;

WHOLE(schar) WHOLE(uchar) WHOLE(short) WHOLE(ushort_) WHOLE(int) WHOLE(unsigned) WHOLE(long) WHOLE(ulong_)
WHOLE(llong) WHOLE(ullong) WHOLE(int8_t) WHOLE(int16_t) WHOLE(int32_t) WHOLE(int64_t) WHOLE(uint8_t)
WHOLE(uint16_t) WHOLE(uint32_t) WHOLE(uint64_t) WHOLE(MPI_Aint) WHOLE(MPI_Offset) WHOLE(MPI_Count)
REAL(float, 1e-5L) REAL(double, 1e-14L) REAL(ldouble, 1e-17L)
COMPLEX(fcomplex, 1e-5L) COMPLEX(dcomplex, 1e-14L) COMPLEX(lcomplex, 1e-17L)
PAIR(float_int, float) PAIR(double_int, double) PAIR(long_int, long) PAIR(two_int, int) PAIR(short_int, short)
PAIR(ldouble_int, long double)
PLACED(truth) COMBINE(truth, land, a && b) COMBINE(truth, lor, a || b) COMBINE(truth, lxor, a != b)
static void truth_give(int rank, int index, void *to) { *(truth *)to = (rank + index) % 3 != 0; }

#define ONE(T, TYPE, NAME, OP, SAME)                                                               \
    {#TYPE " by " #OP, TYPE, OP, sizeof(T), 0, sizeof(T), 0, T##_give, T##_##NAME, T##_put, SAME}
#define WHOLES(T, TYPE)                                                                            \
    ONE(T, TYPE, sum, MPI_SUM, NULL), ONE(T, TYPE, prod, MPI_PROD, NULL), ONE(T, TYPE, min, MPI_MIN, NULL), \
    ONE(T, TYPE, max, MPI_MAX, NULL), ONE(T, TYPE, land, MPI_LAND, NULL), ONE(T, TYPE, lor, MPI_LOR, NULL), \
    ONE(T, TYPE, lxor, MPI_LXOR, NULL), ONE(T, TYPE, band, MPI_BAND, NULL), ONE(T, TYPE, bor, MPI_BOR, NULL), \
    ONE(T, TYPE, bxor, MPI_BXOR, NULL)
#define REALS(T, TYPE)                                                                             \
    ONE(T, TYPE, sum, MPI_SUM, T##_same), ONE(T, TYPE, prod, MPI_PROD, T##_same),                  \
    ONE(T, TYPE, min, MPI_MIN, T##_same), ONE(T, TYPE, max, MPI_MAX, T##_same)
#define COMPLEXES(T, TYPE) ONE(T, TYPE, sum, MPI_SUM, T##_same), ONE(T, TYPE, prod, MPI_PROD, T##_same)
#define PAIRS(T, TYPE) ONE(T, TYPE, minloc, MPI_MINLOC, T##_same), ONE(T, TYPE, maxloc, MPI_MAXLOC, T##_same)

static void predefined(MPI_Comm comm) {
    const kind kinds[] = {
        WHOLES(schar, MPI_SIGNED_CHAR), WHOLES(uchar, MPI_UNSIGNED_CHAR), WHOLES(short, MPI_SHORT),
        WHOLES(ushort_, MPI_UNSIGNED_SHORT), WHOLES(int, MPI_INT), WHOLES(unsigned, MPI_UNSIGNED),
        WHOLES(long, MPI_LONG), WHOLES(ulong_, MPI_UNSIGNED_LONG), WHOLES(llong, MPI_LONG_LONG),
        WHOLES(ullong, MPI_UNSIGNED_LONG_LONG), WHOLES(int8_t, MPI_INT8_T), WHOLES(int16_t, MPI_INT16_T),
        WHOLES(int32_t, MPI_INT32_T), WHOLES(int64_t, MPI_INT64_T), WHOLES(uint8_t, MPI_UINT8_T),
        WHOLES(uint16_t, MPI_UINT16_T), WHOLES(uint32_t, MPI_UINT32_T), WHOLES(uint64_t, MPI_UINT64_T),
        WHOLES(MPI_Aint, MPI_AINT), WHOLES(MPI_Offset, MPI_OFFSET), WHOLES(MPI_Count, MPI_COUNT),
        REALS(float, MPI_FLOAT), REALS(double, MPI_DOUBLE), REALS(ldouble, MPI_LONG_DOUBLE),
        COMPLEXES(fcomplex, MPI_C_FLOAT_COMPLEX), COMPLEXES(dcomplex, MPI_C_DOUBLE_COMPLEX),
        COMPLEXES(lcomplex, MPI_C_LONG_DOUBLE_COMPLEX),
        PAIRS(float_int, MPI_FLOAT_INT), PAIRS(double_int, MPI_DOUBLE_INT), PAIRS(long_int, MPI_LONG_INT),
        PAIRS(two_int, MPI_2INT), PAIRS(short_int, MPI_SHORT_INT), PAIRS(ldouble_int, MPI_LONG_DOUBLE_INT),
        ONE(truth, MPI_C_BOOL, land, MPI_LAND, NULL), ONE(truth, MPI_C_BOOL, lor, MPI_LOR, NULL),
        ONE(truth, MPI_C_BOOL, lxor, MPI_LXOR, NULL),
        ONE(uchar, MPI_BYTE, band, MPI_BAND, NULL), ONE(uchar, MPI_BYTE, bor, MPI_BOR, NULL),
        ONE(uchar, MPI_BYTE, bxor, MPI_BXOR, NULL),
    };
    const int counts[] = {1, 3, 100};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) reduce_all(&kinds[i], counts[i % 3], comm);
}

/* ---- users' operations, on types that they have made ---- */

/* 2x2 matrices: the product does not commute. */
typedef struct { uint64_t a, b, c, d; } matrix;
PLACED(matrix)
COMBINE(matrix, product, ((matrix){a.a * b.a + a.b * b.c, a.a * b.b + a.b * b.d, a.c * b.a + a.d * b.c, a.c * b.b + a.d * b.d}))
static void matrix_give(int rank, int index, void *to) {
    *(matrix *)to = (matrix){(uint64_t)rank + 2, (uint64_t)index + 1, 3, (uint64_t)(rank * index)};
}

/* Affine maps with a letter before them, and so with gaps. */
typedef struct { char letter; int64_t factor, constant; } affine;
static void affine_put(const void *from, void *to) {
    const affine *a = from;
    affine *b = to;
    b->letter = a->letter, b->factor = a->factor, b->constant = a->constant;
}
static void affine_give(int rank, int index, void *to) {
    affine_put(&(affine){(char)('a' + rank), rank % 3 + 1, index - rank}, to);
}
/* The letter is that of the leftmost. */
static void affine_compose(const void *left, void *right) {
    const affine *a = left;
    affine *b = right;
    affine_put(&(affine){a->letter, a->factor * b->factor, a->factor * b->constant + a->constant}, b);
}

/* Two numbers some way apart, which are added. */
#define APART(NAME, OFFSET)                                                                        \
    static void NAME##_put(const void *from, void *to) {                                           \
        memcpy(to, from, 4);                                                                       \
        memcpy((char *)to + OFFSET, (const char *)from + OFFSET, 4);                               \
    }                                                                                              \
    static void NAME##_give(int rank, int index, void *to) {                                       \
        const int one = rank * 10 + index, other = 1000 - index * rank;                            \
        memcpy(to, &one, 4);                                                                       \
        memcpy((char *)to + OFFSET, &other, 4);                                                    \
    }                                                                                              \
    static void NAME##_add(const void *left, void *right) {                                        \
        const int *a = left;                                                                       \
        int *b = right;                                                                            \
        *b += *a;                                                                                  \
        *(int *)((char *)b + OFFSET) += *(const int *)((const char *)a + OFFSET);                  \
    }
APART(gapped, 8)
APART(woven, 64)
APART(backward, -8)

static MPI_Datatype apart(MPI_Aint offset, MPI_Aint lower, MPI_Aint extent) {
    MPI_Datatype raw, made;
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, offset};
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &raw);
    MPI_Type_create_resized(raw, lower, extent, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&raw);
    return made;
}

static void users(MPI_Comm comm) {
    MPI_Datatype matrices, affines, loose, vectors;
    MPI_Type_contiguous(4, MPI_UINT64_T, &matrices);
    MPI_Type_commit(&matrices);
    const int lengths[] = {1, 2};
    const MPI_Aint places[] = {offsetof(affine, letter), offsetof(affine, factor)};
    const MPI_Datatype parts[] = {MPI_CHAR, MPI_INT64_T};
    MPI_Type_create_struct(2, lengths, places, parts, &loose);
    MPI_Type_create_resized(loose, 0, sizeof(affine), &affines);
    MPI_Type_commit(&affines);
    MPI_Type_free(&loose);
    MPI_Type_vector(2, 1, 2, MPI_INT, &loose);
    MPI_Type_create_resized(loose, 0, 16, &vectors);
    MPI_Type_commit(&vectors);
    MPI_Type_free(&loose);
    MPI_Datatype weave = apart(64, 0, 4), back = apart(-8, -8, 16), wide = apart(8, 0, 4096);
    MPI_Op ordered, free_order;
    MPI_Op_create(user, 0, &ordered);
    MPI_Op_create(user, 1, &free_order);
    const kind kinds[] = {
        {"2x2 matrices", matrices, ordered, sizeof(matrix), 0, sizeof(matrix), 0, matrix_give, matrix_product, matrix_put, NULL},
        {"affine maps", affines, ordered, sizeof(affine), 0, sizeof(affine), 0, affine_give, affine_compose, affine_put, NULL},
        {"a vector", vectors, free_order, 16, 0, 12, 0, gapped_give, gapped_add, gapped_put, NULL},
        {"elements with gaps of pages", wide, free_order, 4096, 0, 12, 0, gapped_give, gapped_add, gapped_put, NULL},
        {"elements one into the other", weave, free_order, 4, 0, 68, 16, woven_give, woven_add, woven_put, NULL},
        {"elements that go backwards", back, ordered, 16, -8, 12, 0, backward_give, backward_add, backward_put, NULL},
        {"MPI_INT by a user's sum", MPI_INT, free_order, 4, 0, 4, 0, int_give, int_sum, int_put, NULL},
        {"MPI_DOUBLE by a user's product", MPI_DOUBLE, ordered, 8, 0, 8, 0, double_give, double_prod, double_put, double_same},
        {"MPI_DOUBLE_INT by a user's minimum", MPI_DOUBLE_INT, ordered, 16, 0, 16, 0, double_int_give, double_int_minloc, double_int_put, double_int_same},
    };
    const int counts[] = {1, 2, 5, 16, 700};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) reduce_all(&kinds[i], counts[j], comm);
    /* The next operation may have the handle of the last. */
    for (int i = 0; i < 40; i++) {
        MPI_Op op;
        kind k = i % 2 ? kinds[0] : kinds[6];
        MPI_Op_create(user, i % 2 == 0, &op);
        k.op = op;
        reduce_all(&k, 3, comm);
        MPI_Op_free(&op);
    }
    MPI_Op_free(&ordered);
    MPI_Op_free(&free_order);
    MPI_Type_free(&matrices);
    MPI_Type_free(&affines);
    MPI_Type_free(&vectors);
    MPI_Type_free(&weave);
    MPI_Type_free(&back);
    MPI_Type_free(&wide);
}

#endif
