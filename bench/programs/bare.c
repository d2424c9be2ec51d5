/* bare FILE: maps a file and reads every page: the least that any program does that uses its weights. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
  struct stat status;
  const int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
  if (file < 0 || fstat(file, &status) != 0) return 1;
  const unsigned char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return 1;
  unsigned sum = 0;
  for (off_t at = 0; at < status.st_size; at += 4096) sum += bytes[at];
  printf("%u\n", sum);
  return 0;
}
