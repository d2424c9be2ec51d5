// erfc and erfinv. f32 is computed in f64, with fewer coefficients. Polynomials are minimax (Remez), fitted by
// coefficients.py.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// Of log(exp(x^2) erfc(x)): less what it is at the centre and over x - centre in that, for 0.46 < x < 2.76; of
// log(sqrt(pi) x exp(x^2) erfc(x)): in (x - centre) / (x + centre), from 2.74 on to where erfc is 0.
// clang-format off
constexpr double erfc_near_f32[] = {
    -0.48621210987535379, 0.099301275686273505, -0.023341052389317437, 0.0053569299514021713,
    -0.0011212866036460275, 0.00019802865321619324, -2.3897684105441341e-05, -5.895493999633171e-07,
    1.6022557667002243e-06, -7.0083454305786397e-07, 1.5431974151047844e-07};
constexpr double erfc_far_f32[] = {
    -0.016992679962355917, 0.065294719466392717, -0.12066690329757226, 0.15901137631855647,
    -0.17786277216809174, 0.1790867135610405, -0.16472346396680124, 0.14579640057757554, -0.16048114456667958,
    0.14696221045173993};
constexpr double erfc_near_f64[] = {
    -0.4862121099108308, 0.099301277700285823, -0.02334105160601373, 0.0053569078771291577,
    -0.0011212908948800468, 0.00019810762003816409, -2.3888441952815323e-05, -7.1420930157413062e-07,
    1.5939807592773519e-06, -6.091384286341133e-07, 1.5597797438458261e-07, -2.7319428144893521e-08,
    1.5487520416291846e-09, 1.1361648629399036e-09, -5.9451550538987914e-10, 1.809212136739253e-10,
    -3.8183655771293286e-11, 4.3790192854789821e-12, 7.5092577430804786e-13, -7.2641997002185747e-13,
    2.6480399659167375e-13, -4.1431407023458154e-14};
constexpr double erfc_far_f64[] = {
    -0.0065186179165263739, 0.025662377932428197, -0.04972648851981782, 0.070785858135806526,
    -0.087784936945311337, 0.10011994338930882, -0.1076680716370086, 0.11074612218889791, -0.11001270575759549,
    0.1063370539090078, -0.10066046064152488, 0.093873760246380084, -0.086729839532220521, 0.079797146782270734,
    -0.073411375442698393, 0.067675736661886032, -0.062954163756559919, 0.05985838101665357,
    -0.05538343133774392, 0.045403963101328867, -0.048606954076420857, 0.081323650060581287,
    -0.054955722784181676, -0.073235471804611277, 0.004411159823825667, 0.31311862959465575,
    -0.17580938655337378, -0.36254222468766506, 0.20810159237801773, 0.33104611203277901, -0.24826215841002033};
// clang-format on

struct ErfcConstants {
  double far_centre, limit;
  std::span<const double> near, far;
};
constexpr ErfcConstants erfc_f32{5.3125, 10.3, erfc_near_f32, erfc_far_f32};
constexpr ErfcConstants erfc_f64{8.6875, 27.5, erfc_near_f64, erfc_far_f64};
constexpr double near_split = 0.46875, far_split = 2.75, near_centre = 1.609375;
constexpr double at_near_centre = -1.1888907943157965, at_near_centre_low = 3.54395778656094e-17;
constexpr double log_root_pi = 0.5723649429247001, log_root_pi_low = 5.132975581353913e-18;

// exp(-x^2 + constant + L), over x in the far one, above the split; 1 - erf(x) around 0, 2 - erfc(-x) below. L is
// small, so that little of its error is left in the power; the square, the constant and the linear term are exact sums.
Num erfc_wide(const Num &x, bool single) {
  const ErfcConstants &constants = single ? erfc_f32 : erfc_f64;
  Num magnitude = at_least(at_most(abs(x), constants.limit), near_split), far = magnitude > far_split;
  Num t = (magnitude - constants.far_centre) / (magnitude + constants.far_centre), u = magnitude - near_centre;
  Double2 line = two_product(select(far, 0, u), u.literal(constants.near[0]));
  Num logarithm =
      select(far, polynomial(t, constants.far), u * u * polynomial(u, constants.near.subspan(1)) + line.low);
  Num constant = select(far, -log_root_pi, x.literal(at_near_centre));
  Num constant_low = select(far, -log_root_pi_low, x.literal(at_near_centre_low));
  Double2 square = two_product(magnitude, magnitude), sum = two_sum(0.0 - square.high, constant);
  Double2 all = two_sum(sum.high, line.high);
  Num rest = logarithm + ((all.low + (sum.low - square.low)) + constant_low);
  Num tail = exp_of_sum({all.high, rest}, select(far, magnitude, x.literal(1)));
  return select(abs(x) < near_split, 1.0 - erf_near_zero(x), select(x < 0.0, 2.0 - tail, tail));
}

// erfinv(x) / x in w = -log(1 - x^2) below 6.25, and in sqrt(w) beyond: after Giles, "Approximating the erfinv
// function".
// clang-format off
constexpr double erfinv_middle_f32[] = {
    1.6536545671763478, 0.24015816687626487, -0.0060337060403748352, -0.00074066717653441542,
    0.0001867780898992309, -1.3905882037146302e-05, -1.3853203462712407e-06, 4.3021117185909597e-07,
    -2.5028216134271716e-08, -5.083813866497619e-09, 6.7280996418430906e-10, 1.8035359247576139e-11};
constexpr double erfinv_outer_f32[] = {
    3.0838855956779794, 1.0052587036275529, 0.0053719091799860046, -0.0037448150301133123,
    0.0024803674574020674, -0.0017294126343515243, 0.00099767239835840725, -0.00025917213697043072,
    -5.0826130292005982e-05};
constexpr double erfinv_middle_f64[] = {
    1.6536545626831027, 0.24015818242558834, -0.0060336708714269121, -0.00074070253415461018,
    0.00018673420802010367, -1.3882523394053594e-05, -1.3654691764280637e-06, 4.2347881695029211e-07,
    -2.9070390741422203e-08, -4.1126605312481616e-09, 1.0512230708535185e-09, -5.4142990858791159e-11,
    -1.2978694202188341e-11, 2.6305148625231989e-12, -8.0745806219056886e-14, -4.0017803905650835e-14,
    6.52555892017164e-15, -3.9671100710014453e-17, -1.2260021405823482e-16, 1.5531156125910135e-17,
    6.3704496122234904e-19, -3.4822397237646316e-19, 1.8864211243917174e-20, 3.2103570846807994e-21,
    -3.4048013389326406e-22};
constexpr double erfinv_outer_f64[] = {
    3.0838856104922208, 1.0052589676941535, 0.0053709145535259508, -0.0037512085070548528,
    0.0024914420994371438, -0.0016882755692358899, 0.00095328931442776558, -0.00035503736880399184,
    2.4031743529268276e-05, 6.8283933263875546e-05, -4.7321642551577765e-05, 1.2478450040360191e-05,
    2.9341734927448742e-06, -4.0199892451133969e-06, 1.4832048824233483e-06, 2.4548270614187556e-08,
    -2.5608206631346506e-07, 8.8084062319444788e-08, -5.5309793326400408e-09};
constexpr double erfinv_edge_f64[] = {
    4.8814781489772106, 1.0102911741197989, -0.00015843904946563839, -0.00020572018451482492,
    7.2985253521474667e-05, -1.885312546364741e-05, 4.3149389858429259e-06, -9.3799061202567949e-07,
    2.1118493947250074e-07, -5.940972488685665e-08, 2.4421734322933786e-08, -1.2302757006290099e-08,
    6.2700196241955868e-09, -3.2097146406062544e-09, 1.3378216766796016e-09, -2.5382919036192057e-10,
    -1.3415231695509979e-11};
// clang-format on

Num erfinv_wide(const Num &x, bool single) {
  Num w = 0.0 - log((1.0 - x) * (x + 1)), root = sqrt(w);
  Num near = at_most(w, 6.25) - 3.125, outer = at_most(root, 4) - 3.25;
  Num middle = single ? polynomial(near, erfinv_middle_f32) : polynomial(near, erfinv_middle_f64);
  Num beyond = single ? polynomial(outer, erfinv_outer_f32) : polynomial(outer, erfinv_outer_f64);
  if (!single) beyond = select(root > 4, polynomial(root - 5.03125, erfinv_edge_f64), beyond);
  return select(abs(x) == 1, x * infinity, x * select(w > 6.25, beyond, middle));
}

}  // namespace

Num erfc(const Num &x) { return in_f64(x, erfc_wide); }
Num erfinv(const Num &x) { return in_f64(x, erfinv_wide); }

}  // namespace kiln::codegen::math
