/* A stand-in for a vendor's table driver, our own, with the few entry points that the backend uses. It keeps entries in
 * memory like the real one, and programs them into a card of five registers: key, parameters, command, status, canary. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct env {
    void *user;
    int (*write)(struct env *, uintptr_t, uint32_t);
    int (*read)(struct env *, uintptr_t, uint32_t *);
    int (*error)(struct env *, const char *);
    int (*info)(struct env *, const char *);
} env;

struct table {
    const char *name, *action;
    uint32_t number, key_bits, param_bits, capacity, used;
    uint8_t keys[64][4];
    env *e;
};

enum { OK, FAIL, DUPLICATE, MISSING, FULL, NO_ACTION, NO_TABLE, MISMATCH, CODES };

static const char *names[CODES] = {
    "STANDIN_SUCCESS", "STANDIN_GENERAL_ERR", "STANDIN_CAM_ERR_DUPLICATE_FOUND", "STANDIN_CAM_ERR_KEY_NOT_FOUND",
    "STANDIN_CAM_ERR_FULL", "STANDIN_TABLE_ERR_ACTION_NOT_FOUND", "STANDIN_TARGET_ERR_TABLE_NOT_FOUND",
    "STANDIN_TARGET_ERR_INCOMPATIBLE_SW_HW"};

static struct table tables[] = {
    {"servers", "set_server", 1, 32, 0, 4},
    {"workers", "set_worker", 2, 32, 32, 6},
    {"cluster_groups", "set_group", 3, 16, 32, 8}};

int XilVitisNetP4TargetConfig_standin = 42;

const char *XilVitisNetP4ReturnTypeToString(int code) { return code >= 0 && code < CODES ? names[code] : "STANDIN_UNKNOWN"; }

int XilVitisNetP4StubEnvIf(env *e) { memset(e, 0, sizeof *e); return OK; }

int XilVitisNetP4TargetInit(env **target, env *e, int *config)
{
    uint32_t canary;
    *target = e;
    if (*config != 42 || e->read(e, 0x10, &canary)) return FAIL;
    return canary == 0x01afu ? OK : MISMATCH;
}

int XilVitisNetP4TargetGetTableByName(env **target, char *name, struct table **t)
{
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(name, tables[i].name)) { *t = &tables[i]; (*t)->e = *target; return OK; }
    return NO_TABLE;
}

int XilVitisNetP4TableGetKeySizeBits(struct table *t, uint32_t *bits) { *bits = t->key_bits; return OK; }
int XilVitisNetP4TableGetActionParamsSizeBits(struct table *t, uint32_t *bits) { *bits = t->param_bits; return OK; }

int XilVitisNetP4TableGetActionId(struct table *t, char *name, uint32_t *id)
{
    if (strcmp(name, t->action)) return NO_ACTION;
    *id = 7;
    return OK;
}

static uint32_t word(const uint8_t *b, uint32_t bits)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < (bits + 7) / 8; i++) n = n << 8 | b[i];
    return n;
}

/* command: 1 insert, 2 update, 3 delete, 4 reset; table number above */
static int program(struct table *t, uint32_t command, uint32_t key, uint32_t params)
{
    uint32_t status;
    if (key == 0xdeadbeef) abort();
    if (key == 0xdeadfeed) for (;;) pause();
    if (key == 0xdead0000 && t->e->write(t->e, 0x4000, 1)) return FAIL; /* outside of the instance */
    if (t->e->write(t->e, 0x0, key) || t->e->write(t->e, 0x4, params) || t->e->write(t->e, 0x8, command | t->number << 8)) return FAIL;
    return t->e->read(t->e, 0xc, &status) || status ? FAIL : OK;
}

static int find(struct table *t, const uint8_t *key)
{
    for (uint32_t i = 0; i < t->used; i++)
        if (!memcmp(t->keys[i], key, t->key_bits / 8)) return (int)i;
    return -1;
}

int XilVitisNetP4TableReset(struct table *t) { t->used = 0; return program(t, 4, 0, 0); }

int XilVitisNetP4TableInsert(struct table *t, uint8_t *key, uint8_t *mask, uint32_t priority, uint32_t action, uint8_t *params)
{
    int code;
    if (mask || action != 7 || !params || priority) return FAIL;
    if (find(t, key) >= 0) return DUPLICATE;
    if (t->used == t->capacity) return FULL;
    code = program(t, 1, word(key, t->key_bits), word(params, t->param_bits));
    if (code == OK) memcpy(t->keys[t->used++], key, t->key_bits / 8);
    return code;
}

int XilVitisNetP4TableUpdate(struct table *t, uint8_t *key, uint8_t *mask, uint32_t action, uint8_t *params)
{
    if (mask || action != 7 || !params) return FAIL;
    if (find(t, key) < 0) return MISSING;
    return program(t, 2, word(key, t->key_bits), word(params, t->param_bits));
}

int XilVitisNetP4TableDelete(struct table *t, uint8_t *key, uint8_t *mask)
{
    int at = find(t, key), code;
    if (mask) return FAIL;
    if (at < 0) return MISSING;
    code = program(t, 3, word(key, t->key_bits), 0);
    if (code == OK) memcpy(t->keys[at], t->keys[--t->used], sizeof t->keys[at]);
    return code;
}
