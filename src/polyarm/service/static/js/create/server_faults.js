// Which field of the form an error of the server is about.

/** `where` is a path into the document, like problem.constraints.0.std; null if it is about no field in particular. */
export function findField(form, where) {
  const [first, second, index, leaf] = where.split(".");
  if (first === "problem") return findInProblem(form, second, Number(index), leaf);
  if (first === "breaker") return form.control.fields[0] ?? null;
  return { name: form.name, explorer: form.explorer, lease: form.lease, seed: form.seed }[first] ?? null;
}

function findInProblem(form, part, index, leaf) {
  if (part === "arms") return (form.arms.rows[index] ?? form.arms.rows[0]).name;
  if (part === "constraints") {
    const row = form.constraints.rows[index];
    return { bound: row?.bound, sense: row?.sense, std: row?.costs, row: row?.costs }[leaf] ?? row?.name ?? null;
  }
  const single = {
    family: form.family,
    reward_std: form.rewardStd,
    reward_range: form.rewardLow,
    delta: form.delta,
    r: form.r,
    noise: form.noise,
  };
  return single[part] ?? null;
}
