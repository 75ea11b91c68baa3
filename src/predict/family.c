/* family.c - the weights of points, and the values of fitted families. */
#include "predict/family.h"

#include <math.h>

/* Four at a time, so that one product does not wait for the other. */
void family_weights(double *weights, uint32_t count, double keep)
{
    double w[4] = { 1, keep, keep * keep, keep * keep * keep };
    double keep_4 = w[2] * w[2];
    uint32_t i = count;
    for (; i >= 4; i -= 4)
        for (uint32_t lane = 0; lane < 4; lane++) {
            weights[i - 1 - lane] = w[lane];
            w[lane] *= keep_4;
        }
    for (uint32_t lane = 0; i > 0; lane++)
        weights[--i] = w[lane];
}

double family_at(const struct family_fit *fit, double step)
{
    double k = step - fit->origin;
    switch (fit->family) {
    case FAMILY_INV:
        return fit->limit + fit->sign / ((fit->a * k + fit->b) * k + fit->c);
    case FAMILY_EXP:
        return fit->limit + fit->sign * exp(-fit->rate * (step - fit->shift));
    case FAMILY_FLAT:
        break;
    }
    return fit->limit;
}

double family_mu(const struct family_fit *fit)
{
    return exp(-fit->rate);
}

const char *family_name(enum family family)
{
    static const char *const names[] = { "flat", "inv", "exp" };
    return names[family];
}
