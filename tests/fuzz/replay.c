/* replay.c — runs a corpus without libFuzzer: every given file, and every file in a given folder, is run once. So builds by gcc and with
 * sanitizers run the inputs found by fuzzing as ordinary tests. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path, int depth);

static int replay_folder(const char *path, int depth) {
    DIR *folder = opendir(path);
    int files = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char inner[PATH_MAX];
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner) {
            files += replay(inner, depth + 1);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return files;
}

static int replay_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1); /* exact size, so that the sanitizer detects an access one byte too far */
    if (file == NULL || data == NULL || fread(data, 1, size, file) != size) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int replay(const char *path, int depth) {
    struct stat s;
    if (stat(path, &s) != 0) {
        fprintf(stderr, "replay: no such file or folder: %s\n", path);
        exit(1);
    }
    if (S_ISDIR(s.st_mode)) {
        return depth < 4 ? replay_folder(path, depth) : 0;
    }
    return replay_file(path, (size_t)s.st_size);
}

int main(int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++) {
        files += replay(argv[i], 0);
    }
    printf("%d inputs\n", files);
    if (files == 0) {
        fprintf(stderr, "replay: the corpus is empty\n");
    }
    return files == 0;
}
