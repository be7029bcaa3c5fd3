"""Which of the packed batches a training run reads."""

from collections.abc import Iterable, Sequence

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from trainers.common.params import Common


def planned_batches(shards: ShardSet, common: Common) -> Sequence[int]:
    """The numbers of the batches that ``train.common`` requests, one a step.

    Raises:
        InputError: the shards hold fewer epochs or batches than requested, no batches at all, or none of a domain.
    """
    manifest = shards.manifest
    packed, skipped = len(manifest.epochs), common.skip_epochs
    if skipped + common.epochs > packed:
        wanted = f"epochs is {common.epochs}" + (f" after skip_epochs {skipped}" if skipped else "")
        raise InputError(f"{wanted}, but the shards hold {packed}; lower it, or raise pack.epochs")
    first, available = (
        sum(epoch.batches for epoch in epochs)
        for epochs in (manifest.epochs[:skipped], manifest.epochs[skipped:][: common.epochs])
    )
    batches = _of_domains(shards, range(first, first + available), common.domains)
    if common.steps is not None and common.steps > len(batches):
        of = f" of {_listed(common.domains)}" if common.domains else ""
        raise InputError(
            f"steps is {common.steps}, but {common.epochs} epoch(s) of the shards hold {len(batches)} "
            f"batches{of}; lower it, or raise epochs and pack.epochs"
        )
    if not batches:
        raise InputError(
            "the shards hold no batches; add pairs or lower pack.batch_size, and run the stage 'pack' again"
        )
    return batches[: common.steps]


def _of_domains(shards: ShardSet, batches: range, domains: Sequence[str] | None) -> Sequence[int]:
    if domains is None:
        return batches
    of_batch = shards.domains()
    if absent := set(domains) - set(of_batch):
        raise InputError(
            f"domains names {_listed(absent)}, but the shards hold batches of {_listed(set(of_batch))}; correct it"
        )
    return [batch for batch in batches if of_batch[batch] in domains]


def _listed(domains: Iterable[str]) -> str:
    return ", ".join(f"'{domain}'" for domain in sorted(domains))
