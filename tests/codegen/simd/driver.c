/* Runs copies by kernels that are linked in, each storage between two pages that nobody may touch.

   The one argument names a file of 64-bit words:
     cases, then for each case
       bytes of the source, bytes of the destination, the lowest byte of either from its base address,
       for either whether it lies at the end of its pages, and bytes of a gap there, calls,
       then for each call
         kernel, bits of an address unit on either side (8 or 1), units from either base, begin, end,
         the bytes of its scratch (or 0), arguments, tables,
         the arguments, and for each table the number of its argument, its length, its words,
       then the source, the destination before and the destination after, each filled up to whole words.
   Prints one line for a case that goes wrong, and at the end how many did. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void kernel(int64_t operands, int64_t scratch, int64_t sizes, int64_t begin, int64_t end);

#include "kernels.h" /* static kernel *const kernels[] */

enum { PAGE = 4096, CANARY = 0xA5, MOST_SIZES = 64 };

struct arena {
    uint8_t *pages; /* the first may not be touched, nor may the last */
    uint8_t *data;
    size_t inside, used;
};

static int64_t case_number;
static struct arena src, dst, scratch;

static void die(const char *why)
{
    perror(why);
    exit(3);
}

static void outside(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    intptr_t at = (intptr_t)info->si_addr;
    printf("case %ld: touched byte %ld of %zu of the source, %ld of %zu of the destination, "
           "%ld of %zu of the buffer\n",
           (long)case_number, (long)(at - (intptr_t)src.data), src.used, (long)(at - (intptr_t)dst.data),
           dst.used, (long)(at - (intptr_t)scratch.data), scratch.used);
    fflush(stdout);
    _exit(2);
}

static struct arena map(size_t used, int at_end, size_t gap)
{
    struct arena a = {.used = used, .inside = (used + gap + PAGE) / PAGE * PAGE};
    a.pages = mmap(NULL, a.inside + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a.pages == MAP_FAILED)
        die("mmap");
    memset(a.pages + PAGE, CANARY, a.inside);
    if (mprotect(a.pages, PAGE, PROT_NONE) || mprotect(a.pages + PAGE + a.inside, PAGE, PROT_NONE))
        die("mprotect");
    a.data = a.pages + PAGE + (at_end ? a.inside - used - gap : gap);
    return a;
}

static int untouched(const struct arena *a)
{
    for (const uint8_t *p = a->pages + PAGE; p < a->pages + PAGE + a->inside; p++)
        if ((p < a->data || p >= a->data + a->used) && *p != CANARY)
            return 0;
    return 1;
}

static size_t words(int64_t bytes)
{
    return ((size_t)bytes + 7) / 8;
}

static const int64_t *run_call(const int64_t *at, int64_t src_low, int64_t dst_low)
{
    int64_t which = at[0], src_units = 8 / at[1], dst_units = 8 / at[2];
    int64_t src_address = ((int64_t)src.data - src_low) * src_units + at[3];
    int64_t dst_address = ((int64_t)dst.data - dst_low) * dst_units + at[4];
    int64_t operands[] = {src_address, dst_address};
    int64_t begin = at[5], end = at[6], bytes = at[7], count = at[8], tables = at[9];
    int64_t sizes[MOST_SIZES] = {0};
    if (count > MOST_SIZES)
        die("too many sizes");
    memcpy(sizes, at + 10, 8 * count);
    for (at += 10 + count; tables > 0; tables--, at += 2 + at[1])
        sizes[at[0]] = (int64_t)(at + 2);
    scratch.data = NULL;
    if (bytes)
        scratch = map((bytes + 63) / 64 * 64, 1, 0);
    kernels[which]((int64_t)operands, (int64_t)scratch.data, (int64_t)sizes, begin, end);
    if (bytes)
        munmap(scratch.pages, scratch.inside + 2 * PAGE);
    return at;
}

static const int64_t *behind_call(const int64_t *at)
{
    int64_t tables = at[9];
    for (at += 10 + at[8]; tables > 0; tables--)
        at += 2 + at[1];
    return at;
}

static int judge(const uint8_t *source, const uint8_t *after)
{
    const char *what = NULL;
    size_t at = 0;
    while (at < dst.used && dst.data[at] == after[at])
        at++;
    if (at < dst.used)
        what = "a wrong byte of the destination";
    else if (memcmp(source, src.data, src.used))
        what = "the source changed";
    else if (!untouched(&src) || !untouched(&dst))
        what = "bytes beside an array changed";
    if (what)
        printf("case %ld: %s, byte %zu of %zu\n", (long)case_number, what, at, dst.used);
    return what != NULL;
}

static const int64_t *run_case(const int64_t *at, int *failures)
{
    int64_t src_bytes = at[0], dst_bytes = at[1], src_low = at[2], dst_low = at[3], calls = at[8];
    src = map(src_bytes, at[4], at[5]);
    dst = map(dst_bytes, at[6], at[7]);
    const int64_t *call = at + 9, *data = call;
    for (int64_t k = 0; k < calls; k++)
        data = behind_call(data);
    const int64_t *before = data + words(src_bytes), *after = before + words(dst_bytes);
    memcpy(src.data, data, src_bytes);
    memcpy(dst.data, before, dst_bytes);
    for (int64_t k = 0; k < calls; k++)
        call = run_call(call, src_low, dst_low);
    *failures += judge((const uint8_t *)data, (const uint8_t *)after);
    munmap(src.pages, src.inside + 2 * PAGE);
    munmap(dst.pages, dst.inside + 2 * PAGE);
    return after + words(dst_bytes);
}

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END))
        die("the file of cases");
    long size = ftell(file);
    rewind(file);
    int64_t *all = malloc(size);
    if (!all || fread(all, 1, size, file) != (size_t)size)
        die("the file of cases");
    struct sigaction action = {.sa_sigaction = outside, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    const int64_t *at = all + 1;
    int failures = 0;
    for (case_number = 0; case_number < all[0]; case_number++)
        at = run_case(at, &failures);
    if (at != all + size / 8)
        die("the file of cases has another length");
    printf("%ld cases, %d failures\n", (long)all[0], failures);
    return failures != 0;
}
