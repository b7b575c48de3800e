/* The largest eigenvalue of a matrix, by power iteration: rows are dealt out, the vector is gathered in every step. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, ranks, rows = 256, steps = argc > 1 ? atoi(argv[1]) : 2000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int n = rows * ranks;
    double *matrix = malloc(sizeof(double) * rows * n), *whole = malloc(sizeof(double) * n), *mine = malloc(sizeof(double) * rows);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) matrix[i * n + j] = 1.0 / (1 + abs(rank * rows + i - j));
    for (int j = 0; j < n; j++) whole[j] = 1.0;
    double norm = 0;
    for (int step = 0; step < steps; step++) {
        double square = 0, sum;
        for (int i = 0; i < rows; i++) {
            mine[i] = 0;
            for (int j = 0; j < n; j++) mine[i] += matrix[i * n + j] * whole[j];
            square += mine[i] * mine[i];
        }
        MPI_Allreduce(&square, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        norm = sqrt(sum);
        for (int i = 0; i < rows; i++) mine[i] /= norm;
        MPI_Allgather(mine, rows, MPI_DOUBLE, whole, rows, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("largest eigenvalue %.6f of a matrix of %d rows\n", norm, n);
    MPI_Finalize();
}
