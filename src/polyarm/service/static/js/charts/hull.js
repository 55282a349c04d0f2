// The convex hull of points in the plane (Andrew's monotone chain), in order around it.

export function convexHull(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  if (sorted.length < 3) return sorted;
  return [...halfHull(sorted), ...halfHull(sorted.reverse())];
}

function halfHull(points) {
  const hull = [];
  for (const point of points) {
    while (hull.length > 1 && turn(hull.at(-2), hull.at(-1), point) <= 0) hull.pop();
    hull.push(point);
  }
  hull.pop(); // the first of the other half
  return hull;
}

function turn(a, b, c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}
