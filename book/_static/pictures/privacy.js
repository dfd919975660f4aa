// Formulas that several pictures use.
"use strict";

{
  // Largest true-positive rate at a false-positive rate. Kairouz, Oh and Viswanath 2015, theorem 2.1.
  const largestTpr = (epsilon, delta, fpr) =>
    Math.max(0, Math.min(1, Math.exp(epsilon) * fpr + delta, 1 - Math.exp(-epsilon) * (1 - fpr - delta)));

  // Orders of the Rényi accountant.
  const ORDERS = [...d3.range(2, 65), 72, 80, 96, 128, 160, 192, 256, 320, 384, 512];

  // Divergence of one step at a whole order. Mironov, Talwar and Zhang 2019, section 3.3.
  const stepRdp = (sampleRate, sigma, order) => {
    if (sampleRate === 1) return order / (2 * sigma * sigma);
    const terms = d3.range(order + 1).map((k) => jStat.combinationln(order, k)
      + k * Math.log(sampleRate) + (order - k) * Math.log1p(-sampleRate) + (k * (k - 1)) / (2 * sigma * sigma));
    const largest = Math.max(...terms);
    return (largest + Math.log(d3.sum(terms, (term) => Math.exp(term - largest)))) / (order - 1);
  };

  // What the conversion to (ε, δ) adds to a divergence. Canonne, Kamath and Steinke 2020, proposition 12.
  const conversionCost = (order, delta) => Math.log1p(-1 / order) - (Math.log(delta) + Math.log(order)) / (order - 1);

  window.privacy = { largestTpr, ORDERS, stepRdp, conversionCost };
}
