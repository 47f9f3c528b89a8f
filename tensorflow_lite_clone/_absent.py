"""Names of PyTorch that are not here, and why: what is planned, and what is left out for good."""

from __future__ import annotations

from fnmatch import fnmatchcase

PLANNED = "planned"
LEFT_OUT = "left out"

# (status, reason, patterns of full names). The first entry with a matching pattern decides.
_ENTRIES: tuple[tuple[str, str, str], ...] = (
    (
        LEFT_OUT,
        "functions of sparse tensors that are old, or of tensors on a grid of 2:4",
        "*sparse* torch.*.to_dense torch.*.coalesce torch.*.is_coalesced *crow_indices* "
        "*ccol_indices* *col_indices* *row_indices* *.indices *.values *.indices_copy "
        "*.values_copy torch.dsmm torch.hsmm torch.hspmm torch.saddmm *.smm torch.spmm *.sspaddmm "
        "*.dense_dim *SparseAdam",
    ),
    (
        LEFT_OUT,
        "static quantization; what is here is that of `torch.ao.quantization.quantize_dynamic`",
        "*quant* *qparams* torch.qint* torch.quint* torch.per_channel* torch.per_tensor* *.q_* "
        "*.int_repr *.qscheme *fbgemm* torch.QInt* torch.QUInt* "
        "torch.fused_moving_avg_obs_fake_quant torch.nn.functional.*scaled_mm "
        "torch.nn.functional.scaled_grouped_mm torch.nn.functional.ScalingType "
        "torch.nn.functional.SwizzleType torch.nn.functional.grouped_mm",
    ),
    (
        LEFT_OUT,
        "dtypes that NumPy and ml_dtypes do not have: bits, packed floats, small integers",
        "torch.bit torch.bits* torch.float4* torch.int[1-7] torch.uint[1-7] "
        "torch.Tensor.chalf torch.*.grad_dtype",
    ),
    (LEFT_OUT, "nested and padded tensors", "*to_padded_tensor *nested*"),
    (
        LEFT_OUT,
        "parts of PyTorch's own machinery that it does not document",
        "torch.Tensor.index torch.Tensor.volatile "
        "torch.native_norm torch.get_file_path torch.func.rearrange "
        "torch.autograd.NestedIOFunction torch.autograd.enforce_grad_layout_policy "
        "torch.autograd.set_multithreading_enabled torch.autograd.graph.* torch.autograd._* "
        "torch.autograd.Variable._* torch.autograd.variable torch.utils._* "
        "torch.utils.checkpoint.CheckpointFunction torch.utils.checkpoint.GraphExecGroup "
        "torch.utils.checkpoint.SAC_IGNORED_OPS torch.utils.checkpoint.check_backward_validity "
        "torch.utils.checkpoint.detach_variable torch.utils.checkpoint.*_device_states "
        "torch.utils.collect_env.* torch.utils.model_zoo.tqdm torch.utils.hooks.BackwardHook "
        "torch.utils.benchmark.*Callgrind* torch.utils.benchmark.Func* "
        "torch.utils.benchmark.*Fuzz* torch.utils.benchmark.ParameterAlias "
        "torch.utils.ThroughputBenchmark "
        "torch.utils.*_path torch.utils.*privateuse1* torch.utils.get_cpp_backtrace "
        "torch.utils.checkpoint.set_checkpoint_debug_enabled torch.utils.deterministic* "
        "torch.amp.*._cast torch.amp.*OptState torch.cuda.amp.*._cast torch.cuda.amp.*OptState "
        "torch.backends.__* torch.backends.cpu* torch.backends.nnpack* "
        "torch.backends.mps.is_macos_or_newer torch.distributions.transforms._* "
        "torch.accelerator.empty_host_cache torch.accelerator.reset_accumulated_memory_stats "
        "torch.backends.cuda.SDPAParams torch.backends.cuda.*_reduction_math_sdp* "
        "torch.backends.cuda.can_use_* torch.backends.cuda.is_flash_attention_available",
    ),
    (LEFT_OUT, "names of dimensions", "torch.Tensor.*rename* torch.Tensor.*names*"),
    (
        LEFT_OUT,
        "TorchScript, its compiler and its types",
        "torch.*Type torch.*TypeBuilder torch.Script* torch.AliasDb torch.Argument* torch.Block "
        "torch.CallStack torch.Capsule torch.Code torch.CompilationUnit torch.CompleteArgumentSpec "
        "torch.DeepCopyMemoTable torch.*StorageContext torch.ErrorReport torch.ExecutionPlan "
        "torch.FileCheck torch.testing.FileCheck torch.FunctionSchema torch.Graph "
        "torch.GraphExecutorState torch.Gradient torch.IODescriptor torch.JITException "
        "torch.LiteScriptModule torch.*Logger* torch.Node torch.OperatorInfo torch.PyTorchFile* "
        "torch.StaticModule torch.TracingState torch.Type torch.Use torch.Value torch.*Dict "
        "torch.AVG torch.SUM torch.AggregationType torch.import_ir_module* torch.merge_type* "
        "torch.parse_* torch.unify_type_list torch.fork torch.wait torch.Future torch.PRIVATE_OPS "
        "torch.USE_* torch.FatalError torch.Benchmark* torch.ThroughputBenchmark torch.Tag "
        "torch.nn.functional.*List* torch.nn.functional.boolean_dispatch "
        "torch.nn.functional.assert_int_or_pair torch.classproperty",
    ),
    (
        LEFT_OUT,
        "symbolic shapes of the tracing compiler",
        "torch.Sym* torch.sym_* torch.while_loop torch.cond torch.func.functionalize "
        "torch.func.debug_unwrap torch.func.linearize torch.compiler.* torch.*Dispatch* "
        "torch.sym_constrain* torch.overrides.redispatch_function",
    ),
    (
        LEFT_OUT,
        "entry points of other libraries and devices",
        "torch.mtia* torch.numa* torch.*cudnn_* torch.*miopen_* torch.*mkldnn* torch.*vulkan* "
        "torch.*xla* torch.*ipu* "
        "torch.*.mtia torch.*.xpu torch.*.to_mkldnn torch.batch_norm_* "
        "torch.nn.functional.*_notes torch.linalg.common_notes torch.backends.cuda.*cufft* "
        "torch.backends.cuda.*FFT* torch.backends.cuda.*library torch.backends.cuda.*workspace* "
        "torch.backends.cuda.*rocm* torch.backends.cuda.is_ck* torch.backends.cuda.cuBLASModule "
        "torch.has_* torch.init_num_threads torch.profiler_allow_cudagraph* "
        "torch.prepare_multiprocessing_environment torch.thread_safe_generator "
        "torch.random.thread_safe_generator torch.nn.attention.*impl*",
    ),
    (
        LEFT_OUT,
        "storages of a type, but for what a tensor's `storage()` gives",
        "torch.*Storage torch.*Storage.* torch.*StorageBase torch.Storage torch.storage* "
        "torch.*.storage torch.*.storage_type torch.serialization.StorageType "
        "torch.serialization.normalize_storage_type torch.serialization.storage_to_tensor_type",
    ),
    (
        LEFT_OUT,
        "control of PyTorch's own allocator and of a GPU's hardware: see CuPy and NVML",
        "torch.cuda.*allocator* torch.cuda.*Allocator torch.cuda.GreenContext torch.cuda.MemPool "
        "torch.cuda.use_mem_pool torch.cuda.*host_memory* torch.cuda.memory_snapshot "
        "torch.cuda.list_gpu_processes torch.cuda.clock_rate torch.cuda.power_draw "
        "torch.cuda.temperature torch.cuda.utilization torch.cuda.memory_usage "
        "torch.cuda.device_memory_used torch.cuda.current_*_handle torch.cuda.cuda* "
        "torch.cuda.check_error torch.cuda.CudaError torch.cuda.DeferredCudaCallError "
        "torch.cuda.get_gencode_flags torch.cuda.has_* torch.cuda.*per_process_memory_fraction "
        "torch.cuda.*_cached torch.cuda.*as_nested_dict torch.cuda.*sync_debug_mode "
        "torch.cuda.is_tf32_supported torch.cuda.get_stream_from_external "
        "torch.cuda.reset_accumulated_memory_stats torch.cuda.reset_max_memory_allocated "
        "torch.cuda.default_generators torch.cuda.amp.amp_definitely_not_available "
        "torch.cuda.nvtx.range_* torch.cuda.memory._* torch.cuda.nccl*",
    ),
    (
        LEFT_OUT,
        "TorchScript, rewriting of graphs, and rules of an exporter that is not ours",
        "torch.jit* torch.onnx* torch.fx.experimental* torch.export* torch.ao* torch.package* "
        "torch.classes* "
        "torch.ops* torch.utils.mobile_optimizer*",
    ),
    (
        LEFT_OUT,
        "extensions in C++: kernels are CUDA sources that are loaded at run time",
        "torch.utils.cpp_extension* torch.library* torch.utils.file_baton*",
    ),
    (
        LEFT_OUT,
        "overloads for types that are no tensors: see `torch.overrides`",
        "torch.nn.functional.*torch_function* torch.Tensor._make_*",
    ),
    (
        LEFT_OUT,
        "calls of functions in other processes: see `torch.multiprocessing`",
        "torch.distributed.rpc* torch.distributed.autograd* torch.distributed.nn.RemoteModule",
    ),
    (LEFT_OUT, "pipelines of data, which PyTorch no longer develops", "torch.utils.data.*"),
    (
        LEFT_OUT,
        "other engines, elastic jobs, tracing and schedules with a split backward pass",
        "torch.distributed* torch.nn.parallel* torch.cuda.nccl*",
    ),
    (
        LEFT_OUT,
        "files and ranges of other profilers",
        "torch.profiler* torch.autograd.profiler* torch.autograd._*profiler torch.cuda.profiler*",
    ),
    (
        PLANNED,
        "smaller parts",
        "torch.masked.MaskedTensor torch.masked.as_masked_tensor torch.masked.masked_tensor "
        "torch.accelerator.Graph torch.nn.attention.WARN* "
        "torch.optim.swap_in_optimizer_params_and_state",
    ),
)


def why(name: str) -> tuple[str, str] | None:
    """Status and reason of a full name such as ``torch.Tensor.to_sparse``; None: not known."""
    for status, reason, patterns in _ENTRIES:
        if any([fnmatchcase(name, pattern) for pattern in patterns.split()]):
            return status, reason
    return None


def reason(name: str) -> str:
    """Status and reason of a full name in words."""
    status, text = why(name) or ("unknown", "not among the names of PyTorch that are planned")
    return f"{status}: {text}"


def error(owner: str, space: str, name: str) -> AttributeError:
    """What `owner`, which stands for PyTorch's `space`, raises for a name that it lacks."""
    return AttributeError(f"{owner} has no attribute '{name}' ({reason(f'{space}.{name}')})")
