/* The law of heron/Spread-v0 with discrete actions, by hand: one struct an environment, float32, nothing else.
 *
 * No hierarchy, visibility, noise or checks. Compiled with -DN=(number of agents); one call runs many steps of all
 * environments, so that the loop is C alone. Tests compare it with the environment, number by number.
 */
#include <math.h>
#include <stdint.h>

#define DT 0.1f
#define KEPT 0.75f       /* share of its velocity that an agent keeps over a step */
#define FORCE 5.0f       /* of a push */
#define TOUCH 0.3f       /* closer agents touch */
#define REACH 0.35f      /* farther agents do not repel each other */
#define STIFFNESS 100.0f
#define MARGIN 1e-3f     /* how soft a contact is */
#define LOCAL_RATIO 0.5f /* weight of an agent's own contacts in its reward */

typedef struct {
    uint64_t draws;
    int32_t steps, over;
    float x[N], y[N], vx[N], vy[N], landmark_x[N], landmark_y[N];
    float contacts[N], push_x[N], push_y[N]; /* by the others, where the agents are now */
    float distance;                          /* from the landmarks to their nearest agents, summed */
    float rewards[N], observations[N][6 * N];
} Spread;

/* The next draw in [-1, 1): splitmix64. */
static float uniform(Spread *env) {
    uint64_t z = env->draws += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (float)((z ^ (z >> 31)) >> 40) * 0x1p-23f - 1.0f;
}

/* Each push is opposite for the two; softplus is soft only around contact. */
static void meet(Spread *env, int i, int j, float way_x, float way_y) {
    float square = way_x * way_x + way_y * way_y;
    if (square >= REACH * REACH || square == 0.0f) return;
    float distance = sqrtf(square), overlap = (TOUCH - distance) / MARGIN;
    float soft = fmaxf(overlap, 0.0f) + log1pf(expf(-fabsf(overlap)));
    float share = STIFFNESS * MARGIN * soft / distance;
    env->push_x[i] -= share * way_x, env->push_y[i] -= share * way_y;
    env->push_x[j] += share * way_x, env->push_y[j] += share * way_y;
    if (distance < TOUCH) env->contacts[i] += 1.0f, env->contacts[j] += 1.0f;
}

/* What everybody sees (the messages behind it stay 0), contacts, and how far the landmarks are. */
static void look(Spread *env) {
    for (int i = 0; i < N; i++) {
        float *seen = env->observations[i];
        seen[0] = env->vx[i], seen[1] = env->vy[i], seen[2] = env->x[i], seen[3] = env->y[i];
        env->contacts[i] = env->push_x[i] = env->push_y[i] = 0.0f;
    }
    env->distance = 0.0f;
    for (int k = 0; k < N; k++) {
        float nearest = 1e30f;
        for (int i = 0; i < N; i++) {
            float way_x = env->landmark_x[k] - env->x[i], way_y = env->landmark_y[k] - env->y[i];
            env->observations[i][4 + 2 * k] = way_x, env->observations[i][5 + 2 * k] = way_y;
            nearest = fminf(nearest, way_x * way_x + way_y * way_y);
        }
        env->distance += sqrtf(nearest);
    }
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++) {
            float way_x = env->x[j] - env->x[i], way_y = env->y[j] - env->y[i];
            float *mine = env->observations[i] + 4 + 2 * N, *theirs = env->observations[j] + 4 + 2 * N;
            mine[2 * j - 2] = way_x, mine[2 * j - 1] = way_y;
            theirs[2 * i] = -way_x, theirs[2 * i + 1] = -way_y;
            meet(env, i, j, way_x, way_y);
        }
}

static void restart(Spread *env) {
    for (int i = 0; i < N; i++) {
        env->x[i] = uniform(env), env->y[i] = uniform(env), env->vx[i] = env->vy[i] = 0.0f;
        env->landmark_x[i] = uniform(env), env->landmark_y[i] = uniform(env);
    }
    env->steps = 0;
    look(env);
}

static void step(Spread *env, const int8_t *actions, int last_step) {
    for (int i = 0; i < N; i++) {
        int choice = actions[i]; /* stay, left, right, down, up */
        float push_x = FORCE * (float)((choice == 2) - (choice == 1)) + env->push_x[i];
        float push_y = FORCE * (float)((choice == 4) - (choice == 3)) + env->push_y[i];
        env->x[i] += env->vx[i] * DT, env->y[i] += env->vy[i] * DT;
        env->vx[i] = env->vx[i] * KEPT + push_x * DT, env->vy[i] = env->vy[i] * KEPT + push_y * DT;
    }
    look(env);
    for (int i = 0; i < N; i++)
        env->rewards[i] = -(1.0f - LOCAL_RATIO) * env->distance - LOCAL_RATIO * env->contacts[i];
    env->over = ++env->steps >= last_step;
    if (env->over) restart(env);
}

/* Begin everywhere; `draws` is the seed. */
void begin(Spread *envs, int count) {
    for (int b = 0; b < count; b++) restart(envs + b);
}

/* So many steps of all environments, with actions from a bank `[banked][count][N]`, over and over. */
void run(Spread *envs, int count, const int8_t *bank, int banked, int steps, int last_step) {
    for (int number = 0; number < steps; number++)
        for (int b = 0; b < count; b++)
            step(envs + b, bank + ((int64_t)(number % banked) * count + b) * N, last_step);
}
