/* embed.c - runs while carrel is built: a file becomes an array of bytes, and a NUL, in C. */
#include <stdio.h>

int main(int argc, char **argv) /* embed INPUT OUTPUT NAME */
{
    int byte;
    int column = 0;

    if (argc != 4)
        return 2;
    FILE *in = fopen(argv[1], "re");
    FILE *out = fopen(argv[2], "we");
    if (!in || !out)
        return 1;
    (void)fprintf(out, "static const char %s[] = {", argv[3]);
    while ((byte = getc(in)) != EOF)
        (void)fprintf(out, "%s%d,", column++ % 20 == 0 ? "\n" : "", byte);
    (void)fprintf(out, "\n0 };\n");
    return ferror(in) || fclose(in) != 0 || fclose(out) != 0;
}
