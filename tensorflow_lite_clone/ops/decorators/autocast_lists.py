"""PyTorch's lists of autocast: device type -> function -> which policy its tensors are cast by.

Functions have the names that PyTorch's dispatcher registers them under, without overloads. The
policies have its names too:

* ``lower_precision_fp``: all floating tensors are cast to the dtype of the block;
* ``fp32``: all are cast to float32;
* ``fp32_set_opt_dtype``, ``fp32_append_dtype``: the first is, unless the call names a dtype;
* ``promote``: all are cast to float32 if one of them is float32, else to the dtype of the block;
* ``banned``: an error says what to call instead.

float64 and what is not real are never cast. A test holds the lists against the PyTorch installed.
"""

from __future__ import annotations

_POLICIES: dict[str, dict[str, str]] = {
    "cuda": {
        "lower_precision_fp": """
            _convolution _cudnn_rnn _scaled_dot_product_flash_attention _thnn_fused_gru_cell
            _thnn_fused_lstm_cell addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d
            conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
            cudnn_convolution cudnn_convolution_transpose einsum gru_cell linalg_multi_dot
            linalg_vecdot linear lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell
            scaled_dot_product_attention
        """,
        "fp32": """
            _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d
            _upsample_nearest_exact2d _upsample_nearest_exact3d acos asin
            binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity
            dist erfinv exp expm1 frobenius_norm group_norm hinge_embedding_loss huber_loss kl_div
            l1_loss layer_norm log log10 log1p log2 logsumexp margin_ranking_loss mse_loss
            multi_margin_loss multilabel_margin_loss native_layer_norm nll_loss nll_loss2d
            nuclear_norm pdist poisson_nll_loss pow reciprocal renorm rms_norm rsqrt sinh
            smooth_l1_loss soft_margin_loss softplus tan triplet_margin_loss upsample_bicubic2d
            upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
            upsample_nearest3d upsample_trilinear3d
        """,
        "fp32_set_opt_dtype": """
            cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax prod softmax sum
        """,
        "fp32_append_dtype": "norm",
        "promote": """
            addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot
            vdot
        """,
        "banned": "binary_cross_entropy",
    },
    "cpu": {
        "lower_precision_fp": """
            _addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm
            conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
            linalg_vecdot linear matmul mkldnn_rnn_layer mm prelu scaled_dot_product_attention
        """,
        "fp32": """
            _grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d
            avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky
            cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy_loss ctc_loss
            fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2
            fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
            fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d
            grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky
            linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
            linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank
            linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
            lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss
            multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward nanquantile
            nll_loss nll_loss2d orgqr ormqr pinverse poisson_nll_loss polar prod qr quantile
            reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
            replication_pad3d smooth_l1_loss soft_margin_loss stft svd trace triangular_solve
            triplet_margin_loss view_as_complex
        """,
        "promote": "cat index_copy stack",
    },
}
LISTS: dict[str, dict[str, str]] = {
    device: {name: policy for policy, names in policies.items() for name in names.split()}
    for device, policies in _POLICIES.items()
}
#: Function -> device type -> policy.
_BY_NAME: dict[str, dict[str, str]] = {}
for _device, _listed in LISTS.items():
    for _name, _policy in _listed.items():
        _BY_NAME.setdefault(_name, {})[_device] = _policy


def policies_of(*names: str) -> dict[str, str]:
    """Device type -> policy of the first of these functions that is on its list."""
    found: dict[str, str] = {}
    for name in names:
        for device, policy in _BY_NAME.get(name, {}).items():
            found.setdefault(device, policy)
    return found
