__global__ void scale(float *x, float a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= a;
}

void run(float *x, int n)
{
    scale<<<40, 256>>>(x, 2.0f, n);
    scale<<<1, 1>>>(x, 0.5f, 1);
}
