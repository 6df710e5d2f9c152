"""`[placement]`: how a model's layers are shared out among the nodes."""

from pydantic import Field

from rlxdeploy.model.names import Text
from rlxdeploy.model.precision import PrecisionName
from rlxdeploy.model.vocabulary import Optimize, Policy, UnknownKv
from rlxdeploy.model.written import Amount, Count, Unsigned64, Written


class Objective(Written):
    """What the placement is to be good at, and what it may assume."""

    optimize: Optimize = Field(
        default=Optimize.THROUGHPUT,
        description="What to be good at.",
        examples=["latency"],
    )
    context: Count = Field(
        default=4096, description="Tokens the key-value cache must hold.", examples=[32768]
    )
    hop_secs: Amount = Field(
        default=0.002, description="Seconds one hop between nodes takes.", examples=[0.001]
    )
    kv_bytes_per_layer_token: Unsigned64 | None = Field(
        default=None,
        description="Bytes of key-value cache per layer and token, if you know them.",
        examples=[2048],
    )
    on_unknown_kv: UnknownKv = Field(
        default=UnknownKv.FAIL,
        description="What to do when the cache size cannot be told from the model.",
        examples=["assume"],
    )
    kv_dtype: Text | None = Field(
        default=None,
        description="Element type of the key-value cache. Unwritten: f32.",
        examples=["f16"],
    )
    precision_ladder: tuple[PrecisionName, ...] = Field(
        default=(),
        description="Precisions to try, in this order, until the model fits.",
        examples=[["f16", "mxfp4"]],
    )


class Placement(Written):
    """How layers are shared out among nodes."""

    policy: Policy = Field(
        default=Policy.RAM_BALANCED,
        description="By what the shares are measured; manual takes each node's own layers.",
        examples=["auto"],
    )
    objective: Objective = Field(
        default_factory=Objective,
        description="What the placement is to be good at.",
        examples=[{"optimize": "latency", "context": 32768}],
    )
    n_layers: Count | None = Field(
        default=None,
        description="How many layers the model has. Without it no LAYERS is rendered.",
        examples=[32],
    )
    layer_bytes: Unsigned64 | None = Field(
        default=None, description="Bytes of one layer's weights.", examples=[436_207_616]
    )
    layer_flops: Amount | None = Field(
        default=None, description="Operations for one token in one layer.", examples=[4.4e8]
    )
